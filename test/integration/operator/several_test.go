//go:build integration

package operator_test

import (
	"context"
	"slices"
	"testing"
)

// Operators with a namespace each, as docs/scale.md describes them, lead at the same time, and none does the work of
// another one.
func TestSeveralOperatorsShareAKubernetesCluster(t *testing.T) {
	t.Parallel()
	one, other := newNodeWorld(t, newNodeSet(1)), newNodeWorld(t, newNodeSet(1))
	for _, w := range []*nodeWorld{one, other} {
		w.stopManager()
		w.elects = true
	}
	stop := one.run(t, countWrites(server.Config, &one.writes))
	defer other.run(t, countWrites(server.Config, &other.writes))()
	for _, w := range []*nodeWorld{one, other} {
		eventually(t, func(ctx context.Context) error { return leads(ctx, server.Config, w.namespace) })
		w.scale(t, 2)
		w.hasPods(t, "gpu-0", "gpu-1")
		w.ready(t)
	}
	stop()
	one.scale(t, 3)
	other.scale(t, 3)
	other.hasPods(t, "gpu-0", "gpu-1", "gpu-2")
	other.ready(t)
	other.waitUntilIdle(t)
	if pods, err := one.pods(t.Context()); err != nil || !slices.Equal(pods, []string{"gpu-0", "gpu-1"}) {
		t.Errorf("without its operator, a NodeSet has the pods %v: %v", pods, err)
	}
	defer one.run(t, countWrites(server.Config, &one.writes))()
	one.hasPods(t, "gpu-0", "gpu-1", "gpu-2")
	one.ready(t)
}
