package slurmconf_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestCostlySettingsAreKept(t *testing.T) {
	for name, test := range map[string]struct {
		document, earlier, want string
		excepted, waiting       []string
	}{
		"nothing changes": {
			document: "PrologFlags=Contain\n", earlier: "PrologFlags=Alloc\n", want: "PrologFlags=Contain\n",
		},
		"neither has flags":         {document: "ClusterName=a\n", earlier: "ClusterName=b\n", want: "ClusterName=a\n"},
		"another flag may be added": {document: "PrologFlags=Serial\n", want: "PrologFlags=Serial\n"},
		"a prolog is not added": {
			document: "ClusterName=a\nPrologFlags=Contain\n", want: "ClusterName=a\n", waiting: []string{"PrologFlags"},
		},
		"a prolog is not removed": {
			document: "ClusterName=a\n", earlier: "PrologFlags=x11\n", want: "ClusterName=a\nPrologFlags=x11\n",
			waiting: []string{"PrologFlags"},
		},
		"other flags wait as well": {
			document: "PrologFlags=Serial,alloc\n", earlier: "PrologFlags=Serial\n", want: "PrologFlags=Serial\n",
			waiting: []string{"PrologFlags"},
		},
		"a setting keeps its value": {
			document: "selecttype=select/linear\n", earlier: "SelectType=select/cons_tres\n",
			want: "selecttype=select/cons_tres\n", waiting: []string{"SelectType"},
		},
		"a setting keeps Slurm's default": {
			document: "ClusterName=a\nSelectType=select/linear\n", want: "ClusterName=a\n", waiting: []string{"SelectType"},
		},
		"a default may be written": {
			document: "SelectType=select/cons_tres\n", want: "SelectType=select/cons_tres\n",
		},
		"an excepted setting changes": {
			document: "SelectType=select/linear\nPrologFlags=Alloc\n", want: "SelectType=select/linear\n",
			excepted: []string{"selecttype"}, waiting: []string{"PrologFlags"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			kept, waiting := slurmconf.KeepForJobs(parse(t, test.document), parse(t, test.earlier), test.excepted)
			if got := kept.Render(); got != test.want || !slices.Equal(waiting, test.waiting) {
				t.Errorf("%q, waiting: %q; want %q", got, waiting, test.want)
			}
		})
	}
}

func TestMaxJobCountIsNotLowered(t *testing.T) {
	for name, test := range map[string]struct {
		document, earlier string
		want              string
		keeps             bool
	}{
		"a higher one":  {"MaxJobCount=20000\n", "", "MaxJobCount=20000\n", false},
		"a lower one":   {"MaxJobCount=5000\n", "MaxJobCount=6000\n", "MaxJobCount=6000\n", true},
		"a removed one": {"A=b\n", "MaxJobCount=20000\n", "A=b\nMaxJobCount=20000\n", true},
	} {
		kept, keeps := slurmconf.KeepMaxJobCount(parse(t, test.document), parse(t, test.earlier))
		if got := kept.Render(); got != test.want || keeps != test.keeps {
			t.Errorf("%s: %q, keeps: %t", name, got, keeps)
		}
	}
}

func TestClosedPartitionsStartNoJobs(t *testing.T) {
	document := parse(t, `ClusterName=a
PartitionName=cpu Nodes=ALL State=UP MaxTime=60
PartitionName=gpu Nodes=ALL
PartitionName=old Nodes=ALL State=drain
PartitionName=DEFAULT State=INACTIVE
PartitionName=last Nodes=ALL
`)
	closed := slurmconf.Close(document)
	const want = `ClusterName=a
PartitionName=cpu Nodes=ALL MaxTime=60 State=DOWN
PartitionName=gpu Nodes=ALL State=DOWN
PartitionName=old Nodes=ALL State=INACTIVE
PartitionName=DEFAULT State=INACTIVE
PartitionName=last Nodes=ALL State=INACTIVE
`
	if diff := cmp.Diff(want, closed.Render()); diff != "" {
		t.Errorf("closed (-want +got):\n%s", diff)
	}
	if again := slurmconf.Close(closed); !again.Equal(closed) {
		t.Errorf("closed twice:\n%s", again.Render())
	}
	if reopened := slurmconf.Reopen(closed).Render(); strings.Contains(reopened, "State=DOWN") {
		t.Errorf("reopened:\n%s", reopened)
	}
}

func parse(t *testing.T, text string) slurmconf.Document {
	t.Helper()
	document, err := slurmconf.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return document
}
