package cluster

import (
	"maps"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// edit changes a file of the configuration in force, as somebody does who edits its ConfigMap.
func edit(s *scope, change func(files map[string]string)) {
	s.promoted.files = maps.Clone(s.promoted.files)
	change(s.promoted.files)
}

func appended(text string) func(map[string]string) {
	return func(files map[string]string) { files[slurmconf.FileName] += text }
}

// slurmctld reads an edited file at its next start, although nothing has validated it.
func TestEditedConfigurationIsRepaired(t *testing.T) {
	for name, change := range map[string]func(files map[string]string){
		"invalid line":         appended("SchedulerTpye=x\n"),
		"costly setting":       appended("SelectType=select/linear\n"),
		"additional partition": appended("PartitionName=mine Nodes=ALL\n"),
		"removed partition": func(files map[string]string) {
			files[slurmconf.FileName] = strings.ReplaceAll(files[slurmconf.FileName], "PartitionName=all Nodes=ALL\n", "")
		},
		"empty slurm.conf":   func(files map[string]string) { files[slurmconf.FileName] = "" },
		"removed slurm.conf": func(files map[string]string) { delete(files, slurmconf.FileName) },
		"another file":       func(files map[string]string) { files["cgroup.conf"] += "ConstrainRAMSpace=no\n" },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.apply()
			c.nodes = &slurm.Snapshot{Queue: slurm.Queue{Running: 1}}
			want := c.promoted.files
			edit(c.scope, change)
			if next := c.reconcile(t); next.stage != promote || next.image != "new" {
				t.Fatalf("stage %d, image %q", next.stage, next.image)
			}
			if !maps.Equal(c.promoted.files, want) {
				t.Errorf("the configuration is %s", c.promoted.files)
			}
			if next := c.reconcile(t); next.stage != settled {
				t.Errorf("then stage %d", next.stage)
			}
		})
	}
}

// Fields of others in a ConfigMap are never removed, so waiting for that would not end.
func TestFileAddedByOthersIsNotRepaired(t *testing.T) {
	c := newCluster(t)
	edit(c.scope, func(files map[string]string) { files["mine.conf"] = "x" })
	if next := c.reconcile(t); next.stage != settled {
		t.Errorf("stage %d", next.stage)
	}
}

// Without the changes of a NodeSet that slurmctld refuses, there is no other copy of the configuration in force: it is
// validated again.
func TestEditedConfigurationWithoutANodeSetIsValidatedAgain(t *testing.T) {
	c := cluster{newScope(withPartitions("cpu", "gpu"))}
	promoteBuilt(t, c.scope)
	c.nodeSets[1].Spec.Partition.Config = "MaxTime=soon"
	leaveOut := func() {
		validateWith(hashOf(t, c.scope), &validation.Report{
			Outcome: validation.Accepted, LeftOut: []validation.LeftOut{{NodeSet: "gpu", Detail: "Bad value soon"}},
		})(c.scope)
		c.validation.Annotations[annotationInForce] = c.promoted.hash
	}
	leaveOut()
	for _, want := range []stage{promote, settled} {
		if next := c.reconcile(t); next.stage != want {
			t.Fatalf("stage %d, want %d", next.stage, want)
		}
	}
	want := c.promoted.files
	edit(c.scope, func(files map[string]string) { files["mine.conf"] = "x" })
	if next := c.reconcile(t); next.stage != settled {
		t.Errorf("stage %d after somebody has added a file", next.stage)
	}
	edit(c.scope, appended("SchedulerTpye=x\n"))
	if next := decide(c.scope); next.stage != begin {
		t.Fatalf("stage %d after an edit", next.stage)
	}
	leaveOut()
	for _, want := range []stage{promote, settled} {
		if next := c.reconcile(t); next.stage != want {
			t.Fatalf("then stage %d, want %d", next.stage, want)
		}
	}
	if !maps.Equal(c.promoted.files, want) {
		t.Errorf("the configuration is %s", c.promoted.files)
	}
}

// A configuration with closed partitions is repaired, too, and the change that it prepares is made.
func TestEditedConfigurationWithClosedPartitionsIsRepaired(t *testing.T) {
	c := newClosedCluster(t)
	want := c.promoted.files
	edit(c.scope, appended("SchedulerTpye=x\n"))
	if next := c.reconcile(t); next.stage != promote {
		t.Errorf("stage %d", next.stage)
	}
	if !maps.Equal(c.promoted.files, want) {
		t.Errorf("the configuration is %s", c.promoted.files)
	}
	c.expect(t, tres, true)
	c.apply()
	c.reconcile(t)
	c.expect(t, linear, true)
}
