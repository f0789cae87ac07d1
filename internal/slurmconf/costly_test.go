package slurmconf_test

import (
	"slices"
	"testing"

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
		"partitions keep their resources": {
			document: "PartitionName=a Nodes=ALL\nPartitionName=b SelectTypeParameters=CR_Core\nPartitionName=c Nodes=x " +
				"SelectTypeParameters=CR_Core\n",
			earlier: "PartitionName=a SelectTypeParameters=CR_Socket Nodes=ALL\nPartitionName=b Nodes=ALL\n",
			want: "PartitionName=a Nodes=ALL SelectTypeParameters=CR_Socket\nPartitionName=b\nPartitionName=c Nodes=x " +
				"SelectTypeParameters=CR_Core\n",
			waiting: []string{"SelectTypeParameters"},
		},
		"partitions change their resources despite jobs": {
			document: "PartitionName=a SelectTypeParameters=CR_Core\n", earlier: "PartitionName=a Nodes=ALL\n",
			want: "PartitionName=a SelectTypeParameters=CR_Core\n", excepted: []string{"selecttypeparameters"},
		},
		"what needs Contain waits with it": {
			document: "NamespaceType=namespace/tmpfs\nPrologFlags=Contain\n", earlier: "ClusterName=a\n",
			waiting: []string{"PrologFlags", "NamespaceType"},
		},
		"what needs Contain changes where it is": {
			document: "NamespaceType=namespace/tmpfs\nPrologFlags=Contain\n", earlier: "PrologFlags=Contain\n",
			want: "NamespaceType=namespace/tmpfs\nPrologFlags=Contain\n",
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

func parse(t *testing.T, text string) slurmconf.Document {
	t.Helper()
	document, err := slurmconf.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return document
}
