//go:build integration

package operator_test

import (
	"fmt"
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// hasSlurmName waits until the name of a NodeSet in Slurm is recorded.
func (w *world) hasSlurmName(t *testing.T, set *slinkyv1beta1.NodeSet, want string) {
	t.Helper()
	w.eventually(t, set.Name, set, func() error {
		if got := set.Annotations[slinkyv1beta1.AnnotationSlurmName]; got != want {
			return fmt.Errorf("the recorded name is %q, want %q", got, want)
		}
		return nil
	})
}

// A NodeSet is named in Slurm after the prefix of its host names, and keeps a name that is in force.
func TestNodeSetsAreNamedAfterTheirHostNames(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	world.readyController(t)
	stop := world.acceptEverything(t)
	defer stop()
	older, worker := withPartition("older", ""), withPartition("slurm-worker-slinky", "Default=YES")
	worker.Spec.Template.Spec.Raw = []byte(`{"hostname":"slinky-"}`)
	world.create(t, older, worker)
	lines := []string{
		"NodeSet=older Feature=older", "PartitionName=older Nodes=older",
		"NodeSet=slinky Feature=slinky", "NodeSet=slurm-worker-slinky Feature=slurm-worker-slinky",
		"PartitionName=slinky Nodes=slinky Default=YES",
	}
	world.inForce(t, lines)
	world.hasSlurmName(t, worker, "slinky")
	world.patch(t, older, `{"spec":{"template":{"spec":{"hostname":"old-"}}}}`)
	world.hasSlurmName(t, older, "older")
	another := withPartition("another", "")
	another.Spec.Template.Spec.Raw = worker.Spec.Template.Spec.Raw
	world.create(t, another)
	world.hasSlurmName(t, another, "another")
	world.inForce(t, append(lines, "NodeSet=another Feature=another", "PartitionName=another Nodes=another"))
}
