//go:build integration

package operator_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// Nodes keep their host keys, and slurm.conf has PrologFlags=Contain, which puts ssh sessions into the job's container.
func TestSSHToNodes(t *testing.T) {
	t.Parallel()
	set := newNodeSet(1)
	set.Spec.SSH.Enabled = true
	w := newNodeWorld(t, set)
	keys := &corev1.Secret{}
	w.get(t, naming.NodeSetHostKeys("gpu"), keys)
	tried := &corev1.ConfigMap{}
	w.eventually(t, naming.Candidate("slurm"), tried, func() error {
		if conf := tried.Data["slurm.conf"]; !strings.Contains(conf, "PrologFlags=Contain\n") {
			return fmt.Errorf("slurm.conf is %s", conf)
		}
		return nil
	})
	w.waitUntilIdle(t)
	if err := w.Delete(t.Context(), w.set); err != nil {
		t.Fatal(err)
	}
	w.gone(t, "gpu", w.set)
	again := &corev1.Secret{}
	if w.get(t, keys.Name, again); again.UID != keys.UID {
		t.Error("the host keys were re-created")
	}
}
