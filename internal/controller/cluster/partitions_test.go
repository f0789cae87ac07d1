package cluster

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// withPartitions sets NodeSets with partitions.
func withPartitions(names ...string) func(*scope) {
	return func(s *scope) {
		s.nodeSets = nil
		for _, name := range names {
			set := slinkyv1beta1.NodeSet{}
			set.Name, set.Spec.Partition.Enabled = name, true
			s.nodeSets = append(s.nodeSets, set)
		}
	}
}

// promoteBuilt promotes the configuration that a scope describes.
func promoteBuilt(t *testing.T, s *scope) {
	t.Helper()
	candidate, problem := build(s)
	if problem != nil {
		t.Fatal(problem.Message)
	}
	s.promoted = &promoted{files: candidate.files, hash: candidate.hash, image: s.image, leaving: candidate.leaving}
}

// promotedAsBuilt promotes the configuration that a scope describes at that point.
func promotedAsBuilt(t *testing.T) func(*scope) {
	t.Helper()
	return func(s *scope) { promoteBuilt(t, s) }
}

// slurmctld kills the jobs of a removed partition: a partition that was removed from the spec first accepts no new
// jobs, and is removed when it is empty.
func TestRemovedPartitionDrainsFirst(t *testing.T) {
	scope := newScope(withPartitions("cpu", "gpu"))
	promoteBuilt(t, scope)
	withPartitions("cpu")(scope)
	says := func(partition string) bool {
		t.Helper()
		candidate, problem := build(scope)
		if problem != nil {
			t.Fatal(problem.Message)
		}
		stays := strings.Contains(candidate.files[slurmconf.FileName], "PartitionName="+partition+" State=DRAIN\n")
		if stays != slices.Contains(candidate.leaving, partition) {
			t.Errorf("partitions %v are being removed, with\n%s", candidate.leaving,
				candidate.files[slurmconf.FileName])
		}
		return stays
	}
	if !says("gpu") {
		t.Error("the partition was removed before it was drained")
	}
	promoteBuilt(t, scope)
	if plan := decide(scope); plan.stage != settled {
		t.Errorf("a partition that is being removed changes the configuration each time: stage %d", plan.stage)
	}
	if !says("gpu") {
		t.Error("the partition was removed although its jobs are unknown")
	}
	scope.queue = &slurm.Queue{}
	if !says("gpu") {
		t.Error("the partition was removed before slurmctld reported that it is drained")
	}
	scope.pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "slurm-controller-0"}}}
	scope.agents["slurm-controller-0"] = agent.Report{FilesHash: scope.promoted.hash, RunningHash: scope.promoted.hash}
	for _, jobs := range []string{"gpu", ""} {
		scope.queue.Partitions = map[string]int{jobs: 1}
		if !says("gpu") {
			t.Errorf("the partition was removed with a job in partition %q", jobs)
		}
	}
	scope.queue.Partitions = nil
	if says("gpu") {
		t.Error("the partition was not removed although it has no jobs")
	}
	promoteBuilt(t, scope)
	if says("gpu") {
		t.Error("the partition was added again")
	}
}

func TestRestoredPartitionAcceptsJobs(t *testing.T) {
	scope := newScope(withPartitions("gpu"))
	promoteBuilt(t, scope)
	hash := scope.promoted.hash
	withPartitions()(scope)
	promoteBuilt(t, scope)
	withPartitions("gpu")(scope)
	if candidate, problem := build(scope); problem != nil || candidate.hash != hash || len(candidate.leaving) > 0 {
		t.Errorf("got configuration\n%s", candidate.files[slurmconf.FileName])
	}
}
