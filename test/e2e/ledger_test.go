//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/cluster/audit"
	"github.com/slurm-operator/slurm-operator/test/ledger"
)

// A jobLedger tracks the jobs that users submit during a test.
type jobLedger struct {
	*slurmCluster
	stream ledger.Stream
	// started is when the stream was started.
	started time.Time
	// accepted are the ids of the accepted jobs, as far as they were read.
	accepted string
	checked  bool
}

// submitJobs submits one job after another to a partition, until the ledger is stopped.
func (c *slurmCluster) submitJobs(t *testing.T, name, partition string) *jobLedger {
	t.Helper()
	return c.startLedger(t, ledger.Stream{
		Name: name, Partition: partition, Lengths: []int{2, 9, 1, 4, 7}, Interval: c.interval,
	})
}

// startLedger starts a stream of jobs and its ledger.
func (c *slurmCluster) startLedger(t *testing.T, stream ledger.Stream) *jobLedger {
	t.Helper()
	if _, err := c.login(t.Context(), stream.Start()...); err != nil {
		t.Fatal(err)
	}
	l := &jobLedger{slurmCluster: c, stream: stream, started: time.Now()}
	t.Cleanup(func() {
		if !l.checked {
			totals.unchecked++
		}
	})
	return l
}

// stop stops the stream of jobs; submitted jobs continue.
func (l *jobLedger) stop(t *testing.T) {
	t.Helper()
	if _, err := l.login(t.Context(), l.stream.End()...); err != nil {
		t.Fatal(err)
	}
	l.readAccepted(t)
}

// readAccepted reads the ids of the jobs that were accepted so far.
func (l *jobLedger) readAccepted(t *testing.T) {
	t.Helper()
	var err error
	if l.accepted, err = l.login(t.Context(), l.stream.Accepted()...); err != nil {
		t.Fatal(err)
	}
}

// checkAllCompleted waits until all jobs have ended, and checks that each of them completed and ran only once.
func (l *jobLedger) checkAllCompleted(t *testing.T) ledger.Verdict {
	t.Helper()
	var verdict ledger.Verdict
	l.namespace.Eventually(t, 3*time.Minute, "completion of all jobs", func(ctx context.Context) error {
		accounting, err := l.login(ctx, l.stream.Accounting()...)
		if err != nil {
			return err
		}
		if verdict, err = ledger.Judge(l.accepted, accounting); err == nil && len(verdict.Open) > 0 {
			err = errors.New(verdict.String())
		}
		return err
	})
	l.checked = true
	addToTotals(verdict)
	l.checkDeletedPodsWereIdle(t)
	t.Logf("%s: %s", l.version, verdict)
	if len(verdict.Lost)+len(verdict.Requeued) > 0 || len(verdict.Completed) == 0 {
		t.Errorf("jobs were lost or requeued, or none completed: %s", verdict)
	}
	return verdict
}

// checkDeletedPodsWereIdle compares the audit log with accounting: the operator must not have deleted a pod while a job
// ran on it (I1). Only our own cluster has an audit log to read.
func (l *jobLedger) checkDeletedPodsWereIdle(t *testing.T) {
	t.Helper()
	own, ours := openCluster()
	if !ours {
		return
	}
	deletions, err := audit.ReadFile(own.Plane.AuditLog(), l.started, func(request audit.Request) bool {
		return request.User == operatorUser && request.Namespace == l.namespace.Name &&
			request.Code < http.StatusBadRequest &&
			(request.Resource == "pods" && request.Verb == "delete" || request.Resource == "pods/eviction")
	})
	if err != nil {
		t.Fatal(err)
	}
	accounting, err := l.login(t.Context(), ledger.AllRuns()...)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := ledger.ParseRuns(accounting)
	if err != nil {
		t.Fatal(err)
	}
	for _, deletion := range deletions {
		totals.deletions++
		for _, run := range runs {
			if run.Covers(l.slurmNode(deletion.Name), deletion.At) {
				totals.disturbed++
				t.Errorf("the operator deleted pod %s at %s, while job %s ran there", deletion.Name,
					deletion.At.Format(time.TimeOnly), run.Job)
			}
		}
	}
}
