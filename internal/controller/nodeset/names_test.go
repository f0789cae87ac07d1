package nodeset

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestSlurmNodeNameIsHeldByOnePod(t *testing.T) {
	var taken names
	m1 := types.NamespacedName{Namespace: "hpc", Name: "m1"}
	for _, step := range []struct {
		name types.NamespacedName
		pod  string
		at   time.Duration
		want string
	}{
		{m1, "a-m1", 0, "a-m1"},
		{m1, "a-m1", time.Second, "a-m1"},
		{m1, "b-m1", time.Second, "a-m1"},
		{types.NamespacedName{Namespace: "other", Name: "m1"}, "b-m1", time.Second, "b-m1"},
		{m1, "b-m1", expectationTimeout + time.Second, "a-m1"}, // a-m1 took it again a second after the first time
		{m1, "b-m1", 3 * expectationTimeout, "b-m1"},
	} {
		if got := taken.take(step.name, step.pod, noon.Add(step.at)); got != step.want {
			t.Errorf("after %s, %s takes %s, which %s holds; want %s", step.at, step.pod, step.name, got, step.want)
		}
	}
}

func TestUnusedNamesAreEvicted(t *testing.T) {
	var taken names
	for i := range 1000 {
		name := types.NamespacedName{Namespace: "hpc", Name: fmt.Sprintf("m%d", i)}
		taken.take(name, name.Name, noon.Add(time.Duration(i)*expectationTimeout/10))
	}
	if kept := len(taken.current) + len(taken.previous); kept > 20 {
		t.Errorf("%d names are kept", kept)
	}
}

func TestFreedNameWakesWaitingNodeSetsOnce(t *testing.T) {
	var taken names
	m1, set := types.NamespacedName{Namespace: "hpc", Name: "m1"}, types.NamespacedName{Namespace: "hpc", Name: "b"}
	taken.take(m1, "a-m1", noon)
	taken.wait(m1, set)
	taken.wait(m1, set)
	if sets := taken.free(m1); len(sets) != 1 || sets[0] != set {
		t.Errorf("waiting NodeSets: %v, want %v", sets, set)
	}
	if sets := taken.free(m1); len(sets) != 0 {
		t.Errorf("NodeSets %v wait for a free name", sets)
	}
	if holder := taken.take(m1, "b-m1", noon); holder != "b-m1" {
		t.Errorf("a free name is held by %s", holder)
	}
}
