package desired

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestHasPartition(t *testing.T) {
	for name, test := range map[string]struct {
		config, line, running string
		want                  bool
	}{
		"is unknown before the first configuration": {running: "new"},
		"has no partition of that name":             {line: "PartitionName=other Nodes=other", running: "new"},
		"has the partition":                         {line: "PartitionName=gpu Nodes=gpu", running: "new", want: true},
		"has its parameters, and defaults": {
			config: "maxtime=1-0 Default=YES",
			line:   "PartitionName=gpu Nodes=gpu Default=YES MaxTime=1-0 DefMemPerCPU=100", running: "new", want: true,
		},
		"has a former value of a parameter": {
			config: "MaxTime=2-0", line: "PartitionName=gpu Nodes=gpu MaxTime=1-0", running: "new",
		},
		"does not run with it yet": {line: "PartitionName=gpu Nodes=gpu", running: "old"},
		"never ran":                {line: "PartitionName=gpu Nodes=gpu"},
		"never gets one that cannot be parsed": {
			config: "Nodes=ALL", line: "PartitionName=gpu Nodes=gpu", running: "new",
		},
	} {
		t.Run(name, func(t *testing.T) {
			document, err := slurmconf.Parse(test.line)
			if err != nil {
				t.Fatal(err)
			}
			set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
			set.Spec.Partition = slinkyv1beta1.NodeSetPartition{Enabled: true, Config: test.config}
			if got := HasPartition(set, slurmconf.WithHash(document, "new").Render(), test.running); got != test.want {
				t.Errorf("slurmctld has the partition: %t", got)
			}
		})
	}
}
