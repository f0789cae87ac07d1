package desired

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

func scheduled(start time.Time) *slinkyv1beta1.NodeSet {
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "gpu"}}
	set.Spec.UpdateStrategy.Type = slinkyv1beta1.ScheduledUpdate
	set.Spec.UpdateStrategy.ScheduledUpdate = &slinkyv1beta1.NodeSetScheduledUpdate{
		StartTime: &metav1.Time{Time: start}, Duration: metav1.Duration{Duration: time.Hour},
		Flags: []string{"FLEX", "MAINT"},
	}
	return set
}

func TestReservation(t *testing.T) {
	nodes := []string{"gpu-0", "gpu-1"}
	rolling, deleted := scheduled(noon), scheduled(noon)
	rolling.Spec.UpdateStrategy.Type = slinkyv1beta1.RollingUpdate
	deleted.DeletionTimestamp = &metav1.Time{Time: noon}
	want := &slurm.Reservation{
		Name: "hpc-gpu-update", Start: noon, End: noon.Add(time.Hour), Nodes: "gpu-[0-1]", Users: []string{"root"},
		Flags: []string{"FLEX", "IGNORE_JOBS", "MAINT"},
	}
	for name, test := range map[string]struct {
		set      *slinkyv1beta1.NodeSet
		nodes    []string
		outdated int
		now      time.Time
		want     *slurm.Reservation
	}{
		"covers the window before its start":         {scheduled(noon), nodes, 1, noon.Add(-time.Hour), want},
		"stays during the window":                    {scheduled(noon), nodes, 1, noon.Add(time.Minute), want},
		"is none after the window":                   {scheduled(noon), nodes, 1, noon.Add(time.Hour), nil},
		"is none without outdated pods":              {scheduled(noon), nodes, 0, noon, nil},
		"is none with another strategy":              {rolling, nodes, 1, noon, nil},
		"is none while the NodeSet is being deleted": {deleted, nodes, 1, noon, nil},
		"is none without registered Slurm nodes":     {scheduled(noon), nil, 1, noon, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Reservation(test.set, test.nodes, test.outdated, test.now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWindowEdge(t *testing.T) {
	for name, test := range map[string]struct {
		outdated  int
		now, want time.Time
	}{
		"is the start before the window":  {1, noon.Add(-time.Minute), noon},
		"is the end during the window":    {1, noon, noon.Add(time.Hour)},
		"is none after the window":        {1, noon.Add(time.Hour), time.Time{}},
		"is none if all pods are current": {0, noon, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WindowEdge(scheduled(noon), test.outdated, test.now); !got.Equal(test.want) {
				t.Errorf("the edge is %s, want %s", got, test.want)
			}
		})
	}
}
