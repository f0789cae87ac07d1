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
		"as many as there are to be":          {replicas: 3, want: 3},
		"as there are, while they scale in":   {replicas: 1, pods: []plan.Pod{{Ordinal: 0}, {Ordinal: 7}}, want: 7},
		"as there are to be, while they come": {replicas: 9, pods: []plan.Pod{{Ordinal: 0}}, want: 9},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := &slinkyv1beta1.NodeSet{Spec: slinkyv1beta1.NodeSetSpec{Replicas: &test.replicas}}
			if got := lastOrdinal(&scope{set: set, snapshot: plan.Snapshot{Pods: test.pods}}); got != test.want {
				t.Errorf("up to %d", got)
			}
		})
	}
}
