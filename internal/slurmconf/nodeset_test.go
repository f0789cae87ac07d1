package slurmconf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nodeSetLines returns the lines of a document about NodeSets and partitions.
func nodeSetLines(document Document) []string {
	var found []string
	for line := range strings.Lines(document.Render()) {
		if strings.HasPrefix(line, nodeSet) || strings.HasPrefix(line, partitionName) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func TestNodeSetHasLinesForBothNames(t *testing.T) {
	named := NodeSet{Name: "worker-gpu", SlurmName: "gpu", Partition: new("MaxTime=60")}
	for name, test := range map[string]struct {
		sets  []NodeSet
		extra string
		want  []string
	}{
		"no other name": {
			sets: []NodeSet{{Name: "gpu", SlurmName: "gpu", Partition: new("")}},
			want: []string{"NodeSet=gpu Feature=gpu", "PartitionName=gpu Nodes=gpu"},
		},
		"another name": {
			sets: []NodeSet{named},
			want: []string{
				"NodeSet=gpu Feature=gpu", "NodeSet=worker-gpu Feature=worker-gpu", "PartitionName=gpu Nodes=gpu MaxTime=60",
			},
		},
		"another name, and the administrator's partition of the first one": {
			sets: []NodeSet{named}, extra: "PartitionName=worker-gpu Nodes=worker-gpu",
			want: []string{
				"NodeSet=gpu Feature=gpu", "NodeSet=worker-gpu Feature=worker-gpu", "PartitionName=gpu Nodes=gpu MaxTime=60",
				"PartitionName=worker-gpu Nodes=worker-gpu",
			},
		},
		"another name, and the administrator's line for the first one": {
			sets: []NodeSet{named}, extra: "NodeSet=worker-gpu Nodes=metal",
			want: []string{
				"NodeSet=gpu Feature=gpu", "PartitionName=gpu Nodes=gpu MaxTime=60", "NodeSet=worker-gpu Nodes=metal",
			},
		},
		"another name, and the first one is another NodeSet's name": {
			sets: []NodeSet{{Name: "a", SlurmName: "b"}, {Name: "c", SlurmName: "a"}},
			want: []string{"NodeSet=b Feature=b", "NodeSet=a Feature=a", "NodeSet=c Feature=c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := minimal()
			cluster.NodeSets, cluster.ExtraConf = test.sets, test.extra
			if diff := cmp.Diff(test.want, nodeSetLines(build(t, cluster))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConflictsShowTheNameOfTheCustomResource(t *testing.T) {
	named := NodeSet{Name: "worker-gpu", SlurmName: "gpu", Partition: new("")}
	for extra, want := range map[string]string{
		"PartitionName=gpu Nodes=ALL": `line 1: "PartitionName=gpu": the NodeSet worker-gpu, which is named gpu after ` +
			"spec.template.spec.hostname, defines it already; remove it here, or set spec.partition.enabled of the NodeSet " +
			"to false",
		"NodeSet=gpu Feature=x": `line 1: "NodeSet=gpu": the NodeSet worker-gpu, which is named gpu after ` +
			"spec.template.spec.hostname, defines it already; rename it here; the operator adds the line of a NodeSet",
	} {
		cluster := minimal()
		cluster.NodeSets, cluster.ExtraConf = []NodeSet{named}, extra
		if _, err := Build(cluster); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", extra, err, want)
		}
		written, err := Parse(extra)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckAgainst(named, written, written); err == nil ||
			!strings.Contains(err.Error(), "give the NodeSet another spec.template.spec.hostname") {
			t.Errorf("%s in force: got %v", extra, err)
		}
		if err := CheckAgainst(NodeSet{Name: "worker-gpu", Partition: new("")}, written, written); err != nil {
			t.Errorf("%s in force, without another name: got %v", extra, err)
		}
	}
}

func TestNamesOfNodeSets(t *testing.T) {
	for name, want := range map[string]bool{
		"slinky": true, "a-1": true, "": false, "a b": false, "a=b": false, "a,b": false, "all": false, "Default": false,
	} {
		if IsNodeSetName(name) != want {
			t.Errorf("%q can be the name of a NodeSet: %t, want %t", name, !want, want)
		}
	}
}
