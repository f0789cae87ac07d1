package slurmconf

import (
	"slices"
	"testing"
)

func TestHoldBack(t *testing.T) {
	const old = "ClusterName=c\nPartitionName=a Nodes=ALL\n"
	for name, test := range map[string]struct {
		document, earlier string
		want              string
		held              []string
	}{
		"no key that every release knows": {
			document: old + "SlurmdTimeout=30\nPartitionName=b Nodes=ALL MaxTime=5\n", earlier: old,
			want: old + "SlurmdTimeout=30\nPartitionName=b Nodes=ALL MaxTime=5\n",
		},
		"a parameter": {
			document: "ClusterName=c\nprologtimeout=5\nPartitionName=a Nodes=ALL\n", earlier: old,
			want: old, held: []string{"prologtimeout"},
		},
		"keys of a record, but not the record": {
			document: "ClusterName=c\nPartitionName=a Exclusive=USER Nodes=ALL Topology=tree\nPartitionName=b " +
				"Topology=tree\n", earlier: old,
			want: old + "PartitionName=b\n", held: []string{"PartitionName Exclusive", "PartitionName Topology"},
		},
		"no key in force": {
			document: "ClusterName=c\nPrologTimeout=9\nPartitionName=b Topology=other\n",
			earlier:  "PROLOGTIMEOUT=5\nPartitionName=a topology=tree\n",
			want:     "ClusterName=c\nPrologTimeout=9\nPartitionName=b Topology=other\n",
		},
		"no key that is old enough": {
			document: "ClusterName=c\nMetricsType=metrics/openmetrics\nPartitionName=a Nodes=ALL\n", earlier: old,
			want: "ClusterName=c\nMetricsType=metrics/openmetrics\nPartitionName=a Nodes=ALL\n",
		},
		"no unknown key, which slurmctld refuses": {
			document: old + "Nonsense=1\n", earlier: old,
			want: old + "Nonsense=1\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			document := mustParse(t, test.document)
			kept, held := HoldBack(document, mustParse(t, test.earlier),
				func(release string) bool { return release == "26.05" })
			if want := mustParse(t, test.want); !kept.Equal(want) || !slices.Equal(held, test.held) {
				t.Errorf("held back %q, kept\n%s", held, kept.Render())
			}
			if !document.Equal(mustParse(t, test.document)) {
				t.Error("the document itself has changed")
			}
		})
	}
}

func mustParse(t *testing.T, text string) Document {
	t.Helper()
	document, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return document
}
