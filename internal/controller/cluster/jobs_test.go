package cluster

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// fakeJobs is a client that only lists jobs.
type fakeJobs struct {
	slurm.Client
	jobs []slurm.Job
	err  error
}

func (f fakeJobs) EachJob(_ context.Context, each func(*slurm.Job) error) error {
	for i := range f.jobs {
		if err := each(&f.jobs[i]); err != nil {
			return err
		}
	}
	return f.err
}

func TestPartitionRemovalCountsJobsInLargeQueue(t *testing.T) {
	pending := func(partition string) []slurm.Job {
		return []slurm.Job{{ID: 1, States: []string{"PENDING"}, Partition: partition}}
	}
	for name, test := range map[string]struct {
		client    fakeJobs
		mayRemove bool
	}{
		"no job in it":      {fakeJobs{jobs: pending("cpu")}, true},
		"a job in it":       {fakeJobs{jobs: pending("gpu")}, false},
		"jobs not readable": {fakeJobs{err: &slurm.Error{Kind: slurm.Timeout, Op: "count jobs"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(withPartitions("cpu", "gpu"))
			promoteBuilt(t, scope)
			withPartitions("cpu")(scope)
			promoteBuilt(t, scope)
			scope.pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "slurm-controller-0"}}}
			scope.agents["slurm-controller-0"] = agent.Report{
				FilesHash: scope.promoted.hash, RunningHash: scope.promoted.hash,
			}
			snapshot := &slurm.Snapshot{Queue: slurm.Queue{Partial: true}}
			scope.queue = queueOf(t.Context(), &slurm.Session{Client: test.client}, scope, snapshot)
			if scope.mayRemove("gpu") != test.mayRemove {
				t.Errorf("may be removed: %t, want %t", !test.mayRemove, test.mayRemove)
			}
		})
	}
}

func TestRunningJobsInLargeQueueProtectState(t *testing.T) {
	for name, test := range map[string]struct {
		queue slurm.Queue
		holds bool
	}{
		"none runs": {slurm.Queue{Partial: true, Pending: 5000}, false},
		"one runs on a node": {
			slurm.Queue{Partial: true, Running: 1, Loads: map[string]slurm.Load{"a": {Running: 1}}}, true,
		},
		"one runs on an unknown node": {slurm.Queue{Partial: true, Running: 1}, true},
		"one is cleaned up":           {slurm.Queue{Partial: true, Unplaced: 1}, true},
	} {
		if isBusy(&slurm.Snapshot{Queue: test.queue}) != test.holds {
			t.Errorf("%s: busy: %t", name, !test.holds)
		}
	}
}
