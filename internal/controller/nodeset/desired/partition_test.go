package desired

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestPartition(t *testing.T) {
	const line = "PartitionName=gpu Nodes=gpu "
	for name, test := range map[string]struct {
		config, line, running string
		change                func(*slinkyv1beta1.NodeSet)
		written               string // by the administrator
		want                  PartitionState
	}{
		"is unknown before the first configuration": {running: "new", want: PartitionDiffers},
		"has no partition of that name": {
			line: "PartitionName=other Nodes=other", running: "new", want: PartitionDiffers,
		},
		"has the partition": {line: line, running: "new"},
		"has its parameters, and defaults": {
			config: "maxtime=1-0 Default=YES",
			line:   line + "Default=YES MaxTime=1-0 OverSubscribe=EXCLUSIVE DefMemPerCPU=1000", running: "new",
		},
		"has a former value of a parameter": {
			config: "MaxTime=2-0", line: line + "MaxTime=1-0", running: "new", want: PartitionDiffers,
		},
		"has a parameter that was removed": {line: line + "MaxTime=1-0", running: "new", want: PartitionDiffers},
		"has no parameter any more": {
			line: line + "Default=YES MaxTime=1-0", running: "new", want: PartitionDiffers,
		},
		"has a value that is not the default": {
			line: line + "OverSubscribe=NO", running: "new", want: PartitionDiffers,
		},
		"has the memory of former nodes": {line: line + "DefMemPerCPU=100", running: "new", want: PartitionDiffers},
		"starts no jobs for now":         {line: line + "State=DOWN", running: "new", want: PartitionDiffers},
		"does not run with it yet":       {line: line, running: "old", want: PartitionDiffers},
		"never ran":                      {line: line, want: PartitionDiffers},
		"has one that cannot be parsed":  {config: "Nodes=ALL", line: line, running: "new", want: PartitionDiffers},
		"has one that was removed":       {line: line, running: "new", change: without, want: PartitionDiffers},
		"runs one without jobs": {
			line: line + "State=DRAIN", running: "new", change: without, want: PartitionLeaves,
		},
		"has removed it":               {line: "PartitionName=other Nodes=other", running: "new", change: without},
		"has not removed it yet":       {running: "old", change: without, want: PartitionDiffers},
		"never had one":                {change: without},
		"has one of the administrator": {line: line, written: line + "MaxTime=1", running: "new", change: without},
		"has one of another NodeSet":   {line: line, running: "new", change: renamed},
		"has one under the name in Slurm": {
			line: "PartitionName=node Nodes=node", running: "new", change: renamed, want: PartitionDiffers,
		},
		"leaves one under another name on": {
			line: "PartitionName=old Nodes=old State=DRAIN", running: "new", change: without,
		},
	} {
		t.Run(name, func(t *testing.T) {
			document, err := slurmconf.Parse(test.line)
			if err != nil {
				t.Fatal(err)
			}
			set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
			set.Spec.Partition = slinkyv1beta1.NodeSetPartition{Enabled: true, Config: test.config}
			set.Spec.ExtraConf = "CPUs=4 RealMemory=4000"
			if test.change != nil {
				test.change(set)
			}
			conf := slurmconf.WithHash(document, "new").Render()
			if got := Partition(set, test.written, conf, test.running); got != test.want {
				t.Errorf("the partition of slurmctld: %q, want %q", got, test.want)
			}
		})
	}
}

func without(set *slinkyv1beta1.NodeSet) { set.Spec.Partition.Enabled = false }

// renamed makes a NodeSet without a partition have another name in Slurm.
func renamed(set *slinkyv1beta1.NodeSet) {
	without(set)
	set.Annotations = map[string]string{slinkyv1beta1.AnnotationSlurmName: "node"}
}
