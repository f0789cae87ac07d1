package slurmconf_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestNodeLinesAreKept(t *testing.T) {
	for name, test := range map[string]struct {
		document, earlier, want string
		vacant, waiting, added  []string
	}{
		"nothing changes": {
			document: "NodeName=a CPUs=4\n", earlier: "NodeName=a CPUs=4\n", want: "NodeName=a CPUs=4\n",
		},
		"a node is added": {
			document: "NodeName=a[1-3] CPUs=4 NodeAddr=10.0.0.[1-3]\n",
			earlier:  "NodeName=a[1-2] NodeAddr=10.0.0.[1-2] CPUs=4\n",
			want:     "NodeName=a[1-3] CPUs=4 NodeAddr=10.0.0.[1-3]\n",
		},
		"a node that has registered without a line gets none": {
			document: "NodeName=a,dynamic,b CPUs=4\n", want: "NodeName=a,b CPUs=4\n", added: []string{"dynamic"},
		},
		"parameters that cost nothing change": {
			document: "NodeName=a CPUs=4 Weight=2 Features=x\n", earlier: "NodeName=a CPUs=4 Feature=y\n",
			want: "NodeName=a CPUs=4 Weight=2 Features=x\n",
		},
		"a busy node is not removed": {
			document: "ClusterName=c\nNodeName=a1 CPUs=4\nPartitionName=p Nodes=a1\n", earlier: "NodeName=a[1-2] CPUs=4\n",
			want:    "ClusterName=c\nNodeName=a2 CPUs=4\nNodeName=a1 CPUs=4\nPartitionName=p Nodes=a1\n",
			waiting: []string{"a2"},
		},
		"the last node is not removed": {
			document: "ClusterName=c\n", earlier: "NodeName=a CPUs=4\n", want: "ClusterName=c\nNodeName=a CPUs=4\n",
			waiting: []string{"a"},
		},
		"a vacant node is removed": {
			document: "ClusterName=c\n", earlier: "NodeName=a[1-2] CPUs=4\n", want: "ClusterName=c\nNodeName=a1 CPUs=4\n",
			vacant: []string{"a2"}, waiting: []string{"a1"},
		},
		"only the busy nodes of a line do not change": {
			document: "NodeName=a[1-4] CPUs=8 NodeAddr=h[1-4]\n", earlier: "NodeName=a[1-4] CPUs=4 NodeAddr=h[1-4]\n",
			want:   "NodeName=a[2,4] CPUs=4 NodeAddr=h[2,4]\nNodeName=a[1,3] CPUs=8 NodeAddr=h[1,3]\n",
			vacant: []string{"a1", "a3"}, waiting: []string{"a2", "a4"},
		},
		"a default changes": {
			document: "NodeName=DEFAULT CPUs=8 Gres=gpu:1\nNodeName=a,b\nNodeName=c CPUs=2\n",
			earlier:  "NodeName=DEFAULT CPUs=4\nNodeName=a,b\nNodeName=c CPUs=2\n",
			want:     "NodeName=c CPUs=2\nNodeName=a CPUs=4\nNodeName=DEFAULT CPUs=8 Gres=gpu:1\nNodeName=b\n",
			vacant:   []string{"b"}, waiting: []string{"a", "c"},
		},
		"the default moves into the line": {
			document: "NodeName=a cpus=4\n", earlier: "NodeName=DEFAULT CPUs=4\nNodeName=a\n", want: "NodeName=a cpus=4\n",
		},
		"the default before the line applies": {
			document: "NodeName=DEFAULT CPUs=4\nNodeName=a,b\nNodeName=DEFAULT CPUs=2\nPartitionName=p Nodes=a\n",
			earlier:  "NodeName=a CPUs=1\n",
			want: "NodeName=a CPUs=1\nNodeName=DEFAULT CPUs=4\nNodeName=b\nNodeName=DEFAULT CPUs=2\n" +
				"PartitionName=p Nodes=a\n",
			waiting: []string{"a"},
		},
		"records of elastic nodes are settled elsewhere": {
			document: "ClusterName=c\n", earlier: "NodeName=a State=CLOUD CPUs=4\n", want: "ClusterName=c\n",
		},
		"an administrator's line with the state CLOUD": {
			document: "ClusterName=c\n", earlier: "NodeName=a CPUs=4 State=CLOUD\n",
			want: "ClusterName=c\nNodeName=a CPUs=4 State=CLOUD\n", waiting: []string{"a"},
		},
		"an administrator's line with no other parameter than the state CLOUD": {
			document: "ClusterName=c\n", earlier: "NodeName=a State=CLOUD\n",
			want: "ClusterName=c\nNodeName=a State=CLOUD\n", waiting: []string{"a"},
		},
		"a line that slurmctld refuses": {
			document: "NodeName=a[1- CPUs=4\n", earlier: "NodeName=b CPUs=4\n",
			want:    "NodeName=b CPUs=4\nNodeName=a[1- CPUs=4\n",
			waiting: []string{"b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			kept, waiting := slurmconf.KeepNodes(parse(t, test.document), parse(t, test.earlier),
				func(node string) bool { return slices.Contains(test.vacant, node) },
				func(node string) bool { return node != "dynamic" })
			if diff := cmp.Diff(test.want, kept.Render()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			want := slurmconf.WaitingNodes{Kept: test.waiting, Added: test.added}
			if diff := cmp.Diff(want, waiting); diff != "" {
				t.Errorf("waiting (-want +got):\n%s", diff)
			}
		})
	}
}

// Addresses keep the order of their nodes, and take no more room than in the administrator's line.
func TestAddressesOfKeptNodesStayTogether(t *testing.T) {
	for name, test := range map[string]struct{ earlier, want string }{
		"in the order of the names": {
			earlier: "NodeName=a[1001-3000] NodeAddr=10.0.0.[1001-3000] Port=[7001-9000] CPUs=4\n",
			want:    "NodeName=a[1001-3000] NodeAddr=10.0.0.[1001-3000] Port=[7001-9000] CPUs=4\n",
		},
		"in another order": {
			earlier: "NodeName=a[1-3] NodeAddr=h3,h1,h2\n", want: "NodeName=a[1-3] NodeAddr=h3,h1,h2\n",
		},
		"in several lines": {
			earlier: "NodeName=b[1-2] NodeAddr=h[1-2]\nNodeName=a1 NodeAddr=k1\n",
			want:    "NodeName=b1,b2,a1 NodeAddr=h[1-2],k1\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			kept, _ := slurmconf.KeepNodes(slurmconf.Document{}, parse(t, test.earlier),
				func(string) bool { return false }, func(string) bool { return true })
			if diff := cmp.Diff(test.want, kept.Render()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLinesOfSomeNodesAreLeftOut(t *testing.T) {
	document := parse(t, "NodeName=a[1-3] CPUs=4 NodeAddr=h[1-3]\nNodeName=c State=CLOUD CPUs=2\n")
	got := slurmconf.WithoutNodes(document, func(node string) bool { return node == "a2" || node == "c" })
	want := "NodeName=a[1,3] CPUs=4 NodeAddr=h[1,3]\nNodeName=c State=CLOUD CPUs=2\n"
	if diff := cmp.Diff(want, got.Render()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
