package nodeset

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestEventsOfLargeNodeSetsAreCollectedLonger(t *testing.T) {
	set := types.NamespacedName{Namespace: "slurm", Name: "gpu"}
	var delays eventDelays
	for _, step := range []struct {
		pods int
		want time.Duration
	}{
		{3, 200 * time.Millisecond}, {5000, 500 * time.Millisecond}, {65_536, 2 * time.Second}, {0, 200 * time.Millisecond},
	} {
		delays.update(set, step.pods)
		if got := delays.of(set); got != step.want {
			t.Errorf("with %d pods: %s, want %s", step.pods, got, step.want)
		}
		if got := delays.of(types.NamespacedName{Name: "other"}); got != minEventDelay {
			t.Errorf("another NodeSet: %s", got)
		}
	}
	if len(delays.bySet) > 0 {
		t.Errorf("small NodeSets are remembered: %v", delays.bySet)
	}
}
