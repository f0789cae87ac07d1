//go:build integration

package operator_test

import (
	"bytes"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// I8: while idle there are no writes and no full lists of Slurm's nodes or jobs, with all resource types present.
func TestIdleOperatorWritesNothing(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	world.readyController(t)
	controller := slinkyv1beta1.ObjectReference{Name: "slurm"}
	world.create(t,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "key"},
			Data:       map[string][]byte{"jwt_hs256.key": bytes.Repeat([]byte{1}, 32), "password": []byte("p")},
		},
		newToken("erin"),
		&slinkyv1beta1.Accounting{ObjectMeta: metav1.ObjectMeta{Name: "slurm"},
			Spec: slinkyv1beta1.AccountingSpec{StorageConfig: &slinkyv1beta1.StorageConfig{
				Host: "mariadb", Username: "slurm", PasswordKeyRef: &slinkyv1beta1.SecretKeyReference{
					Name: "key", Key: "password",
				},
			}}},
		&slinkyv1beta1.LoginSet{
			ObjectMeta: metav1.ObjectMeta{Name: "login"}, Spec: slinkyv1beta1.LoginSetSpec{ControllerRef: controller},
		},
		&slinkyv1beta1.NodeSet{
			ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: slinkyv1beta1.NodeSetSpec{ControllerRef: controller},
		},
	)
	stop := world.acceptEverything(t) // the NodeSet changes the configuration once more
	world.waitUntilIdle(t)
	stop()
	// The operator settles within a few windows: on a busy computer, something may be late.
	for range 3 {
		writes, lists := world.watchIdle(t)
		if writes == 0 && len(lists) == 0 {
			return
		}
		t.Logf("%d writes; lists of nodes or jobs, with the last requests: %q", writes, lists)
	}
	t.Error("the operator has not become idle")
}

// watchIdle waits for more than a minute, because some polls happen every 15 seconds. It returns the number of writes in
// that time, and the last requests to Slurm if there were lists of nodes or jobs.
func (w *world) watchIdle(t *testing.T) (writes int64, lists []string) {
	t.Helper()
	const window = 65 * time.Second
	written, requests := w.writes.Load(), len(w.slurm.Requests())
	listed, _ := w.slurm.Lists()
	select {
	case <-time.After(window):
	case <-t.Context().Done():
	}
	if len(w.slurm.Requests()) == requests {
		t.Error("Slurm got no requests at all, so the test proves nothing")
	}
	t.Logf("%d requests to Slurm in %s", len(w.slurm.Requests())-requests, window)
	if now, _ := w.slurm.Lists(); now != listed {
		lists = last(w.slurm.Requests(), 20)
	}
	return w.writes.Load() - written, lists
}

// last returns the last elements of a list.
func last(list []string, count int) []string { return list[max(0, len(list)-count):] }
