package slurmconf

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChangedNodeSetsAreLeftOut(t *testing.T) {
	build := func(extra string, sets ...NodeSet) Document {
		t.Helper()
		cluster := minimal()
		cluster.NodeSets, cluster.ExtraConf = sets, extra
		document, err := Build(cluster)
		if err != nil {
			t.Fatal(err)
		}
		return document
	}
	cpu := NodeSet{Name: "cpu", Partition: new("")}
	gpu := NodeSet{Name: "gpu", Partition: new("MaxTime=60"), GresTypes: []string{"gpu"}}
	badGpu := NodeSet{Name: "gpu", Partition: new("MaxTime=soon"), GresTypes: []string{"gpu", "shard"}}
	nic := NodeSet{Name: "nic", GresTypes: []string{"nic"}}
	named := NodeSet{Name: "worker-gpu", SlurmName: "gpu", Partition: new("MaxTime=60")}
	badNamed := NodeSet{Name: "worker-gpu", SlurmName: "gpu", Partition: new("MaxTime=soon")}
	quiet := func(set NodeSet) NodeSet { return NodeSet{Name: set.Name, SlurmName: set.SlurmName} }
	tests := map[string]struct {
		before, sets, want []NodeSet
		changed, leave     []string
		extra              string
	}{
		"no changes": {
			before: []NodeSet{cpu, gpu}, sets: []NodeSet{cpu, gpu}, want: []NodeSet{cpu, gpu},
		},
		"a NodeSet in force stays unchanged": {
			before: []NodeSet{cpu, gpu}, sets: []NodeSet{cpu, badGpu}, changed: []string{"gpu"}, leave: []string{"gpu"},
			want: []NodeSet{cpu, gpu},
		},
		"a new NodeSet has no partition": {
			before: []NodeSet{cpu}, sets: []NodeSet{cpu, gpu}, changed: []string{"gpu"}, leave: []string{"gpu"},
			want: []NodeSet{cpu, quiet(gpu)},
		},
		"a new NodeSet has no GRES": {
			before: []NodeSet{cpu}, sets: []NodeSet{cpu, nic}, changed: []string{"nic"}, leave: []string{"nic"},
			want: []NodeSet{cpu, quiet(nic)},
		},
		"other changes are included": {
			before: []NodeSet{gpu}, sets: []NodeSet{cpu, badGpu, nic}, changed: []string{"cpu", "gpu", "nic"},
			leave: []string{"gpu"}, want: []NodeSet{cpu, gpu, nic},
		},
		"removed GRES stay in force": {
			before: []NodeSet{gpu}, sets: []NodeSet{{Name: "gpu", Partition: new("MaxTime=soon")}},
			changed: []string{"gpu"}, leave: []string{"gpu"}, want: []NodeSet{gpu},
		},
		"the administrator's lines stay": {
			before: []NodeSet{gpu}, sets: []NodeSet{badGpu}, changed: []string{"gpu"}, leave: []string{"gpu"},
			want: []NodeSet{gpu}, extra: "PartitionName=all Nodes=gpu",
		},
		"GRES that another NodeSet adds too stay": {
			before: nil, sets: []NodeSet{badGpu, {Name: "more", GresTypes: []string{"shard"}}},
			changed: []string{"gpu", "more"}, leave: []string{"gpu"},
			want: []NodeSet{quiet(gpu), {Name: "more", GresTypes: []string{"shard"}}},
		},
		"a NodeSet with another name in Slurm stays unchanged": {
			before: []NodeSet{named}, sets: []NodeSet{badNamed}, changed: []string{"worker-gpu"},
			leave: []string{"worker-gpu"}, want: []NodeSet{named},
		},
		"a new NodeSet with another name in Slurm has no partition": {
			before: []NodeSet{cpu}, sets: []NodeSet{cpu, badNamed}, changed: []string{"worker-gpu"},
			leave: []string{"worker-gpu"}, want: []NodeSet{cpu, quiet(named)},
		},
		"all NodeSets of the first configuration": {
			sets: []NodeSet{cpu, gpu}, changed: []string{"cpu", "gpu"}, leave: []string{"cpu", "gpu"},
			want: []NodeSet{quiet(cpu), quiet(gpu)},
		},
		"a disabled partition stays disabled": {
			before: []NodeSet{gpu}, sets: []NodeSet{{Name: "gpu", GresTypes: []string{"gpu", "nic"}}},
			changed: []string{"gpu"}, leave: []string{"gpu"},
			want: []NodeSet{{Name: "gpu", GresTypes: []string{"gpu"}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			document := build(test.extra, test.sets...)
			changes := ChangesOf(document, build("", test.before...), test.sets, nil)
			if diff := cmp.Diff(append([]string{}, test.changed...), changes.Names()); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
			want := build(test.extra, test.want...)
			if diff := cmp.Diff(lines(want), lines(changes.LeaveOut(document, test.leave))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// lines returns the lines of a document, sorted.
func lines(document Document) []string {
	return slices.Sorted(strings.Lines(document.Render()))
}

func TestPartitionInForceRoundTrips(t *testing.T) {
	for _, parameters := range []string{"", `Default=YES AllowGroups="a b" Comment=\#1`} {
		cluster := minimal()
		cluster.NodeSets = []NodeSet{{Name: "gpu", Partition: &parameters}}
		document, err := Build(cluster)
		if err != nil {
			t.Fatal(err)
		}
		config, found := PartitionInForce(document, "gpu")
		if !found {
			t.Fatal("not found")
		}
		cluster.NodeSets[0].Partition = &config
		again, err := Build(cluster)
		if err != nil || !again.Equal(document) {
			t.Errorf("%v: it became\n%s", err, again.Render())
		}
		if config, found := PartitionInForce(document, "cpu"); found {
			t.Errorf("another NodeSet has %q", config)
		}
	}
}
