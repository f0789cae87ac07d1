//go:build integration

package operator_test

import (
	"context"
	"errors"
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// Slurm keeps running while the operator restarts, so no condition of its clusters changes, and no alert fires.
func TestRestartedOperatorKeepsStatus(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(2))
	w.waitUntilIdle(t)
	w.stopManager()
	versions := func() [2]string {
		controller, set := &slinkyv1beta1.Controller{}, &slinkyv1beta1.NodeSet{}
		w.get(t, "slurm", controller)
		w.get(t, w.set.Name, set)
		return [2]string{controller.ResourceVersion, set.ResourceVersion}
	}
	before := versions()
	lists, _ := w.slurm.Lists()
	defer w.run(t, countWrites(server.Config, &w.writes))()
	w.until(t, "the new operator to read Slurm", func(context.Context) error {
		if now, _ := w.slurm.Lists(); now == lists {
			return errors.New("there was no list")
		}
		return nil
	})
	w.waitUntilIdle(t)
	if after := versions(); after != before {
		t.Errorf("the versions of Controller and NodeSet were %v, and are %v", before, after)
	}
}
