package slurm

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPendingReasons(t *testing.T) {
	for name, want := range map[string]PendingReason{
		"Resources":                PendingResources,
		"Priority":                 PendingPriority,
		"JobHeldUser":              PendingHeld,
		"AssocGrpGRES":             PendingLimit,
		"QOSMaxCpuPerUserLimit":    PendingLimit,
		"MaxCpuRunMinsPerUser":     PendingLimit,
		"QOSNotAllowed":            PendingInvalid,
		"DependencyNeverSatisfied": PendingInvalid,
		"ReqNodeNotAvail":          PendingNodes,
		"None":                     PendingOther,
		"":                         PendingOther,
		"ANewReason":               PendingOther,
	} {
		if got := ParsePendingReason(name); got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
	}
}

// TestPendingReasonsOfSlurm lists the reasons of Slurm 24.11 and 26.05 that are in no other group.
func TestPendingReasonsOfSlurm(t *testing.T) {
	content, err := os.ReadFile("../plugin/why/testdata/reasons.txt")
	if err != nil {
		t.Fatal(err)
	}
	var others []string
	for name := range strings.FieldsSeq(string(content)) {
		if ParsePendingReason(name) == PendingOther {
			others = append(others, name)
		}
	}
	want := []string{
		"BurstBufferOperation", "BurstBufferResources", "BurstBufferStageIn", "Cleaning", "FedJobLock", "InactiveLimit",
		"NonZeroExitCode", "None", "Prolog", "SchedDefer", "TimeLimit",
	}
	if diff := cmp.Diff(want, others); diff != "" {
		t.Errorf("other reasons (-want +got):\n%s", diff)
	}
}

func TestPendingJobsAreCountedByPartitionAndReason(t *testing.T) {
	pending := []string{"PENDING"}
	queue, err := count([]Job{
		{ID: 1, States: pending, Partition: "gpu", Reason: "Resources"},
		{ID: 2, States: pending, Partition: "gpu,cpu", Reason: "Priority"},
		{ID: 3, States: pending, Partition: "gpu", Reason: "Priority"},
		{ID: 4, States: []string{"COMPLETED"}, Partition: "gpu", Reason: "Resources"},
		{ID: 5, States: []string{"RUNNING"}, Partition: "gpu", Reason: "None", Nodes: "a"},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[Waiting]int{
		{"gpu", PendingResources}: 1, {"gpu", PendingPriority}: 2, {"cpu", PendingPriority}: 1,
	}
	if diff := cmp.Diff(want, queue.Waiting); diff != "" {
		t.Errorf("waiting jobs (-want +got):\n%s", diff)
	}
}
