package slurmconf_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestClosedPartitionsStartNoJobs(t *testing.T) {
	document := parse(t, `ClusterName=a
PartitionName=cpu Nodes=ALL State=UP MaxTime=60
PartitionName=gpu Nodes=ALL
PartitionName=old Nodes=ALL State=drain
PartitionName=DEFAULT State=INACTIVE
PartitionName=last Nodes=ALL
`)
	closed, states := slurmconf.Close(document)
	const want = `ClusterName=a
PartitionName=cpu Nodes=ALL State=DOWN MaxTime=60
PartitionName=gpu Nodes=ALL State=DOWN
PartitionName=old Nodes=ALL State=INACTIVE
PartitionName=DEFAULT State=INACTIVE
PartitionName=last Nodes=ALL State=INACTIVE
`
	if diff := cmp.Diff(want, closed.Render()); diff != "" {
		t.Errorf("closed (-want +got):\n%s", diff)
	}
	if again, _ := slurmconf.Close(closed); !again.Equal(closed) {
		t.Errorf("closed twice:\n%s", again.Render())
	}
	if reopened := slurmconf.Reopen(closed, states); !reopened.Equal(document) {
		t.Errorf("reopened:\n%s", reopened.Render())
	}
}
