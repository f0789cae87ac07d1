//go:build integration

package operator_test

import (
	"bytes"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
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
	world.eventually(t, "slurm-accounting", &appsv1.StatefulSet{}, func() error { return nil })
	world.setReady(t, world.runSlurmdbd(t, "127.0.0.1", ""))
	stop := world.acceptEverything(t)       // the NodeSet changes the configuration once more
	world.waitUntilQuiet(t, 20*time.Second) // longer than the pause between two polls
	stop()
	// More than a minute, because some polls happen every 15 seconds.
	const window = 65 * time.Second
	before, requests := world.writes.Load(), len(world.slurm.Requests())
	lists, _ := world.slurm.Lists()
	timer := time.NewTimer(window)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
	if writes := world.writes.Load() - before; writes != 0 {
		t.Errorf("%d writes in %s", writes, window)
	}
	if after, _ := world.slurm.Lists(); after != lists {
		t.Errorf("%d lists of nodes or jobs in %s, the last requests were %q", after-lists, window,
			last(world.slurm.Requests(), 20))
	}
	if len(world.slurm.Requests()) == requests {
		t.Error("Slurm got no requests at all, so the test proves nothing")
	}
	t.Logf("%d requests to Slurm in %s", len(world.slurm.Requests())-requests, window)
}

// last returns the last elements of a list.
func last(list []string, count int) []string { return list[max(0, len(list)-count):] }
