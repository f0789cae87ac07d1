//go:build integration

package operator_test

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/operator"
)

// When the operator is uninstalled, no finalizer may be left that only the operator could remove, and no job may be
// killed.
func TestRelease(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		deleted, withController bool
		wantGone                bool // once it is deleted
		wantLog                 string
	}{
		"a NodeSet can be deleted without the operator": {
			withController: true, wantGone: true, wantLog: "may be deleted",
		},
		"a terminating NodeSet is released when its cluster is gone": {
			deleted: true, wantGone: true, wantLog: "may be deleted",
		},
		"a terminating NodeSet waits while its cluster exists": {
			deleted: true, withController: true, wantLog: "may wait for jobs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			world := newWorld(t)
			world.stopManager()
			if test.withController {
				world.create(t, &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}})
			}
			set := newNodeSet(1)
			set.Finalizers = []string{slinkyv1beta1.FinalizerDrain}
			world.create(t, set)
			remove := func() {
				if err := world.Delete(t.Context(), set); err != nil {
					t.Fatal(err)
				}
			}
			if test.deleted {
				remove()
			}
			var log bytes.Buffer
			if err := operator.Release(t.Context(), server.Config, []string{world.namespace}, &log); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(log.String(), test.wantLog) {
				t.Errorf("the log is %q, without %q", log.String(), test.wantLog)
			}
			if !test.deleted {
				remove()
			}
			err := world.Get(t.Context(), client.ObjectKeyFromObject(set), set)
			if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if gone := err != nil; gone != test.wantGone {
				t.Errorf("the NodeSet is gone: %t, want %t", gone, test.wantGone)
			}
		})
	}
}
