package clusterconf_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// named returns a NodeSet with a prefix of host names, a recorded name in Slurm and an age; the first two may be empty.
func named(name, hostname, recorded string, age time.Duration) slinkyv1beta1.NodeSet {
	set := slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(-age)),
	}}
	if hostname != "" {
		set.Spec.Template.Spec.Raw = []byte(`{"hostname":"` + hostname + `"}`)
	}
	if recorded != "" {
		set.Annotations = map[string]string{slinkyv1beta1.AnnotationSlurmName: recorded}
	}
	return set
}

func TestSlurmNames(t *testing.T) {
	type sets = []slinkyv1beta1.NodeSet
	const (
		byObject = "NodeSet=worker Feature=worker\nPartitionName=worker Nodes=worker\n"
		byGroup  = "NodeSet=slinky Feature=slinky\nNodeSet=worker Feature=worker\nPartitionName=slinky Nodes=slinky\n"
		theirs   = "NodeSet=slinky Feature=slinky\nPartitionName=slinky Nodes=slinky\n"
	)
	for name, test := range map[string]struct {
		sets             sets
		inForce, written string
		want             map[string]string
	}{
		"no prefix": {sets: sets{named("gpu", "", "", 0)}, want: map[string]string{"gpu": "gpu"}},
		"a new NodeSet with a prefix": {
			sets: sets{named("worker", "slinky-", "", 0)}, want: map[string]string{"worker": "slinky"},
		},
		"a prefix that is the NodeSet's name": {
			sets: sets{named("gpu", "gpu-", "", 0)}, want: map[string]string{"gpu": "gpu"},
		},
		"characters that Slurm does not accept": {
			sets: sets{named("worker", "a b,c=", "", 0)}, want: map[string]string{"worker": "worker"},
		},
		"a name with a meaning in Slurm": {
			sets: sets{named("worker", "all-", "", 0)}, want: map[string]string{"worker": "worker"},
		},
		"the NodeSet's name is in force": {
			sets: sets{named("worker", "slinky-", "", 0)}, inForce: byObject, want: map[string]string{"worker": "worker"},
		},
		"the NodeSet's name is in force, without a partition": {
			sets: sets{named("worker", "slinky-", "", 0)}, inForce: "NodeSet=worker Feature=worker",
			want: map[string]string{"worker": "worker"},
		},
		"the prefix is in force": {
			sets: sets{named("worker", "slinky-", "", 0)}, inForce: byGroup, want: map[string]string{"worker": "slinky"},
		},
		"the prefix is in force in a cluster of another operator": {
			sets: sets{named("worker", "slinky-", "", 0)}, inForce: theirs, want: map[string]string{"worker": "slinky"},
		},
		"the NodeSet's name is in force, and a line of extraConf for the prefix": {
			sets: sets{named("worker", "slinky-", "", 0)}, inForce: byObject + "NodeSet=slinky Feature=slinky",
			written: "NodeSet=slinky Feature=slinky", want: map[string]string{"worker": "worker"},
		},
		"the NodeSet's name is in force, and such a line was removed": {
			sets: sets{named("worker", "slinky-", "", 0)}, inForce: byObject + "NodeSet=slinky Feature=slinky",
			want: map[string]string{"worker": "worker"},
		},
		"the prefix is in force, and extraConf has a partition of the NodeSet's name": {
			sets:    sets{named("worker", "slinky-", "", 0)},
			inForce: byGroup + "PartitionName=worker Nodes=worker", written: "PartitionName=worker Nodes=worker",
			want: map[string]string{"worker": "slinky"},
		},
		"the recorded name is kept without a configuration in force": {
			sets: sets{named("worker", "slinky-", "worker", 0)}, want: map[string]string{"worker": "worker"},
		},
		"the recorded name is kept, whatever is in force": {
			sets: sets{named("worker", "slinky-", "slinky", 0)}, inForce: byObject, want: map[string]string{"worker": "slinky"},
		},
		"another prefix": {
			sets: sets{named("worker", "other-", "slinky", 0)}, inForce: byGroup, want: map[string]string{"worker": "other"},
		},
		"the prefix is removed": {
			sets: sets{named("worker", "", "slinky", 0)}, inForce: byGroup, want: map[string]string{"worker": "worker"},
		},
		"a prefix is added": {
			sets: sets{named("worker", "slinky-", "", 0)}, inForce: byObject, want: map[string]string{"worker": "worker"},
		},
		"two new NodeSets with one prefix": {
			sets: sets{named("a", "slinky-", "", 0), named("b", "slinky", "", time.Hour)},
			want: map[string]string{"a": "a", "b": "slinky"},
		},
		"two new NodeSets with one prefix at the same time": {
			sets: sets{named("b", "slinky-", "", 0), named("a", "slinky-", "", 0)},
			want: map[string]string{"a": "slinky", "b": "b"},
		},
		"a younger NodeSet has the prefix already": {
			sets: sets{named("a", "slinky-", "", time.Hour), named("b", "slinky-", "slinky", 0)},
			want: map[string]string{"a": "a", "b": "slinky"},
		},
		"the NodeSet that had the prefix is deleted": {
			sets: sets{named("b", "slinky-", "b", 0)}, inForce: "NodeSet=slinky Feature=slinky\nNodeSet=b Feature=b",
			want: map[string]string{"b": "b"},
		},
		"a new NodeSet whose prefix is the name of another": {
			sets: sets{named("a", "gpu", "", time.Hour), named("gpu", "", "", 0)},
			want: map[string]string{"a": "a", "gpu": "gpu"},
		},
		"a new NodeSet whose name is the prefix of another": {
			sets:    sets{named("a", "gpu", "gpu", time.Hour), named("gpu", "", "", 0)},
			inForce: "NodeSet=gpu Feature=gpu\nNodeSet=a Feature=a",
			want:    map[string]string{"a": "gpu"},
		},
		"a new NodeSet with another prefix whose name is the prefix of another": {
			sets: sets{named("a", "gpu", "gpu", time.Hour), named("gpu", "dgx-", "", 0)},
			want: map[string]string{"a": "gpu", "gpu": "dgx"},
		},
		"a recorded name that an older NodeSet has": {
			sets: sets{named("gpu", "", "", time.Hour), named("a", "gpu", "gpu", 0)}, inForce: "NodeSet=gpu Feature=gpu",
			want: map[string]string{"a": "a", "gpu": "gpu"},
		},
		"a copy of a NodeSet with its annotation": {
			sets: sets{named("a", "slinky-", "slinky", time.Hour), named("b", "slinky-", "slinky", 0)},
			want: map[string]string{"a": "slinky", "b": "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inForce, written := parse(t, test.inForce), parse(t, test.written)
			got := clusterconf.SlurmNames(test.sets, inForce, written)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			slices.Reverse(test.sets)
			if again := clusterconf.SlurmNames(test.sets, inForce, written); !maps.Equal(got, again) {
				t.Errorf("in another order, the names are %v", again)
			}
		})
	}
}

// A NodeSet keeps its name when others are added or removed, and before its name is recorded too, while they are the
// same.
func TestSlurmNamesAreStable(t *testing.T) {
	others := [][]slinkyv1beta1.NodeSet{
		nil,
		{named("old", "slinky-", "", 2*time.Hour)},
		{named("new", "slinky-", "", 0)},
		{named("slinky", "", "", 0)},
		{named("slinky", "worker-", "", 0), named("new", "slinky-", "", 0)},
	}
	for _, hostname := range []string{"", "slinky-"} {
		for i, before := range others {
			set := named("worker", hostname, "", time.Hour)
			sets := append(slices.Clone(before), set)
			names := clusterconf.SlurmNames(sets, slurmconf.Document{}, slurmconf.Document{})
			inForce := buildWith(t, sets, names)
			if now := clusterconf.SlurmNames(sets, inForce, slurmconf.Document{}); !maps.Equal(now, names) {
				t.Errorf("prefix %q, others %d: %v become %v", hostname, i, names, now)
			}
			if name, changes := clusterconf.NameToRecord(&set, names); changes {
				set.Annotations = map[string]string{slinkyv1beta1.AnnotationSlurmName: name}
			}
			for j, after := range others {
				now := clusterconf.SlurmNames(append(slices.Clone(after), set), inForce, slurmconf.Document{})
				if now["worker"] != names["worker"] {
					t.Errorf("prefix %q, others %d and then %d: %s becomes %q", hostname, i, j, names["worker"], now["worker"])
				}
			}
		}
	}
}

func TestNameIsRecordedIfThereIsAPrefix(t *testing.T) {
	for name, test := range map[string]struct {
		set     slinkyv1beta1.NodeSet
		name    string
		changes bool
	}{
		"no prefix":               {set: named("a", "", "", 0), name: "a"},
		"a prefix":                {set: named("a", "b-", "", 0), name: "b", changes: true},
		"a prefix that is unused": {set: named("a", "b-", "", 0), name: "a", changes: true},
		"recorded":                {set: named("a", "b-", "b", 0), name: "b"},
		"the prefix is removed":   {set: named("a", "", "b", 0), name: "a", changes: true},
		"no name":                 {set: named("a", "", "b", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			got, changes := clusterconf.NameToRecord(&test.set, map[string]string{"a": test.name})
			if got != test.name || changes != test.changes {
				t.Errorf("got %q, changes: %t", got, changes)
			}
		})
	}
}

// buildWith builds the slurm.conf of NodeSets with names in Slurm.
func buildWith(t *testing.T, sets []slinkyv1beta1.NodeSet, names map[string]string) slurmconf.Document {
	t.Helper()
	cluster := slurmconf.Cluster{
		Name: "c", Hosts: []slurmconf.Host{{Name: "h"}}, Port: 1, SlurmUser: "slurm", MaxNodeCount: 1,
	}
	for i := range sets {
		if name := names[sets[i].Name]; name != "" {
			cluster.NodeSets = append(cluster.NodeSets,
				slurmconf.NodeSet{Name: sets[i].Name, SlurmName: name, Partition: new("")})
		}
	}
	document, err := slurmconf.Build(cluster)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func parse(t *testing.T, text string) slurmconf.Document {
	t.Helper()
	document, err := slurmconf.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return document
}
