package slurmconf_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestCostsOfAChange(t *testing.T) {
	const linear, tres = "select/linear", "select/cons_tres"
	for name, test := range map[string]struct {
		document, inForce string
		excepted          []string
		want              slurmconf.Costs
	}{
		"none": {document: "SlurmdTimeout=60\n", inForce: "SlurmdTimeout=90\n"},
		"of a key": {
			document: "selecttype=select/linear\n", inForce: "SelectType=select/cons_tres\n",
			want: slurmconf.Costs{Keys: []slurmconf.CostlyChange{{"SelectType", tres, linear, false}}},
		},
		"of a key that is set twice, of which the last line counts": {
			document: "SelectType=select/cons_tres\nSelectType=select/linear\n", inForce: "SelectType=select/cons_tres\n",
			want: slurmconf.Costs{Keys: []slurmconf.CostlyChange{{"SelectType", tres, linear, false}}},
		},
		"none of a key that is set to the value in force again": {
			document: "SelectType=select/linear\nSelectType=select/cons_tres\n", inForce: "SelectType=select/cons_tres\n",
		},
		"none of a key that is set to Slurm's default": {document: "SelectType=select/cons_tres\n"},
		"none of a key whose line with Slurm's default is removed": {
			inForce: "SlurmdSpoolDir=/var/spool/slurmd\nMaxJobCount=10000\n",
		},
		"of a removed key": {
			inForce: "SlurmdSpoolDir=/scratch\n",
			want:    slurmconf.Costs{Keys: []slurmconf.CostlyChange{{"SlurmdSpoolDir", "/scratch", "/var/spool/slurmd", false}}},
		},
		"of the first flag for prologs": {
			document: "PrologFlags=Serial,Alloc\n", inForce: "PrologFlags=Serial\n",
			want: slurmconf.Costs{Keys: []slurmconf.CostlyChange{{"PrologFlags", "Serial", "Serial,Alloc", false}}},
		},
		"of a lower MaxJobCount": {
			document: "MaxJobCount=500\n",
			want:     slurmconf.Costs{Keys: []slurmconf.CostlyChange{{"MaxJobCount", "10000", "500", false}}},
		},
		"of excepted keys": {
			document: "MaxJobCount=500\nSelectType=select/linear\n", excepted: []string{"maxjobcount", "selecttype"},
			want: slurmconf.Costs{Keys: []slurmconf.CostlyChange{
				{"SelectType", tres, linear, true}, {"MaxJobCount", "10000", "500", true},
			}},
		},
		"of removed lines of nodes": {
			document: "NodeName=a1 CPUs=4\n", inForce: "NodeName=a[1-3] CPUs=4\n",
			want: slurmconf.Costs{Nodes: []slurmconf.CostlyNodes{{"a[2-3]", false}}},
		},
		"of excepted lines of nodes": {
			document: "NodeName=a CPUs=2\n", inForce: "NodeName=a CPUs=4\n", excepted: []string{"nodename"},
			want: slurmconf.Costs{Nodes: []slurmconf.CostlyNodes{{"a", true}}},
		},
		"of removed GRES types and partitions": {
			document: "GresTypes=nic\nPartitionName=all Nodes=ALL\n",
			inForce:  "GresTypes=gpu,nic\nPartitionName=all Nodes=ALL\nPartitionName=old Nodes=ALL\n",
			want:     slurmconf.Costs{GresTypes: []string{"gpu"}, Partitions: []string{"old"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := slurmconf.CostsOf(parse(t, test.document), parse(t, test.inForce), test.excepted)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("costs (-want +got):\n%s", diff)
			}
			if got.IsZero() != cmp.Equal(test.want, slurmconf.Costs{}) {
				t.Errorf("IsZero: %t", got.IsZero())
			}
		})
	}
}

// What is said beforehand is what happens: the keys that are named to wait are those that the controller keeps.
func TestCostsAreThoseThatTheControllerKeeps(t *testing.T) {
	document := parse(t, "PrologFlags=X11\nSelectType=select/linear\nSlurmdSpoolDir=/scratch\nMaxJobCount=1\n")
	for _, excepted := range [][]string{nil, {"SelectType"}, {"prologflags", "maxjobcount"}} {
		_, kept := slurmconf.KeepForJobs(document, slurmconf.Document{}, excepted)
		var waiting []string
		for _, change := range slurmconf.CostsOf(document, slurmconf.Document{}, excepted).Keys {
			if !change.Despite && !change.CostsPending() {
				waiting = append(waiting, change.Key)
			}
		}
		slices.Sort(kept)
		if slices.Sort(waiting); !slices.Equal(waiting, kept) {
			t.Errorf("except %q, it says that %q wait, and keeps %q", excepted, waiting, kept)
		}
	}
}

func TestCostsWithoutOthers(t *testing.T) {
	costs := func(value string, partitions ...string) slurmconf.Costs {
		return slurmconf.Costs{
			Keys:       []slurmconf.CostlyChange{{Key: "SelectType", InForce: "a", Wanted: value}},
			Partitions: partitions,
		}
	}
	if left := costs("b", "x").Without(costs("b", "x", "y")); !left.IsZero() {
		t.Errorf("the same costs again: %v", left)
	}
	want := costs("c", "y")
	if diff := cmp.Diff(want, costs("c", "x", "y").Without(costs("b", "x"))); diff != "" {
		t.Errorf("other costs (-want +got):\n%s", diff)
	}
}
