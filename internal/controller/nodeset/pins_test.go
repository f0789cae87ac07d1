package nodeset

import (
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
)

func TestPinsAreReadUpToLastOrdinal(t *testing.T) {
	tests := map[string]struct {
		replicas int32
		pods     []plan.Pod
		want     int
	}{
		"to replicas":                       {replicas: 3, want: 3},
		"to the last pod during a scale-in": {replicas: 1, pods: []plan.Pod{{Ordinal: 0}, {Ordinal: 7}}, want: 7},
		"to replicas during a scale-out":    {replicas: 9, pods: []plan.Pod{{Ordinal: 0}}, want: 9},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := &slinkyv1beta1.NodeSet{Spec: slinkyv1beta1.NodeSetSpec{Replicas: &test.replicas}}
			if got := lastOrdinal(&scope{set: set, snapshot: plan.Snapshot{Pods: test.pods}}); got != test.want {
				t.Errorf("last ordinal is %d, want %d", got, test.want)
			}
		})
	}
}
