package slurmconf

import (
	"slices"
	"testing"
)

func TestKeepPartitions(t *testing.T) {
	earlier := mustParse(t, `NodeSet=gpu Feature=gpu
NodeSet=old Feature=old
PartitionName=DEFAULT MaxTime=60
PartitionName=gpu Nodes=gpu
PartitionName=long Nodes=gpu,old,host-1 Default=YES MaxTime=7-0 State=UP Alternate=gpu
PartitionName=all Nodes=all
PartitionName=static Nodes=host-[1-3],old
PartitionName=old Nodes=old
PartitionName=idle Nodes=old
`)
	document := mustParse(t, "NodeSet=gpu Feature=gpu\nNodeName=host-[2-9] CPUs=1\nPartitionName=gpu Nodes=gpu\n")
	kept, draining := KeepPartitions(document, earlier, func(name string) bool { return name == "idle" })
	if want := []string{"long", "all", "static", "old"}; !slices.Equal(draining, want) {
		t.Errorf("%v are draining instead of %v", draining, want)
	}
	want := mustParse(t, `NodeSet=gpu Feature=gpu
NodeName=host-[2-9] CPUs=1
PartitionName=gpu Nodes=gpu
PartitionName=long Nodes=gpu MaxTime=7-0 State=DRAIN
PartitionName=all Nodes=all State=DRAIN
PartitionName=static Nodes=host-2,host-3 State=DRAIN
PartitionName=old State=DRAIN
`)
	if !kept.Equal(want) {
		t.Errorf("the document is\n%s", kept.Render())
	}
	again, draining := KeepPartitions(document, kept, func(string) bool { return true })
	if len(draining) > 0 || !again.Equal(document) {
		t.Errorf("%v remain in\n%s", draining, again.Render())
	}
}
