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

// books are kept on the jobs that users submit while a story goes on.
type books struct {
	*slurmCluster
	jobs ledger.Stream
	// opened is when the stream began.
	opened time.Time
	// accepted are the numbers of the jobs, as far as they are read.
	accepted string
	balanced bool
}

// usersSubmit lets users submit one job after another to a partition, until the books are closed.
func (c *slurmCluster) usersSubmit(t *testing.T, name, partition string) *books {
	t.Helper()
	return c.opensBooks(t, ledger.Stream{Name: name, Partition: partition, Lengths: []int{2, 9, 1, 4, 7}})
}

// opensBooks starts a stream of jobs.
func (c *slurmCluster) opensBooks(t *testing.T, jobs ledger.Stream) *books {
	t.Helper()
	if _, err := c.login(t.Context(), jobs.Start()...); err != nil {
		t.Fatal(err)
	}
	b := &books{slurmCluster: c, jobs: jobs, opened: time.Now()}
	t.Cleanup(func() {
		if !b.balanced {
			totals.unbalanced++
		}
	})
	return b
}

// close ends the stream of jobs; those that were submitted go on.
func (b *books) close(t *testing.T) {
	t.Helper()
	if _, err := b.login(t.Context(), b.jobs.End()...); err != nil {
		t.Fatal(err)
	}
	b.read(t)
}

// read reads which jobs were accepted so far.
func (b *books) read(t *testing.T) {
	t.Helper()
	var err error
	if b.accepted, err = b.login(t.Context(), b.jobs.Accepted()...); err != nil {
		t.Fatal(err)
	}
}

// balance waits for the end of all jobs, and holds that every one of them was run, to its end and only once.
func (b *books) balance(t *testing.T) ledger.Verdict {
	t.Helper()
	var verdict ledger.Verdict
	b.namespace.Eventually(t, 3*time.Minute, "the end of all jobs", func(ctx context.Context) error {
		accounting, err := b.login(ctx, b.jobs.Accounting()...)
		if err != nil {
			return err
		}
		if verdict, err = ledger.Judge(b.accepted, accounting); err == nil && len(verdict.Open) > 0 {
			err = errors.New(verdict.String())
		}
		return err
	})
	b.balanced = true
	enter(verdict)
	b.disturbedNobody(t)
	t.Logf("%s: %s", b.version, verdict)
	if len(verdict.Lost)+len(verdict.Requeued) > 0 || len(verdict.Completed) == 0 {
		t.Errorf("the ledger says: %s", verdict)
	}
	return verdict
}

// disturbedNobody holds afterwards, by what the API server and accounting have noted, that the operator deleted no pod while a job ran on
// it (I1). Of a cluster that is not ours there is no log to read.
func (b *books) disturbedNobody(t *testing.T) {
	t.Helper()
	own, ours := openCluster()
	if !ours {
		return
	}
	deletions, err := audit.ReadFile(own.Plane.AuditLog(), b.opened, func(request audit.Request) bool {
		return request.User == operatorUser && request.Namespace == b.namespace.Name && request.Code < http.StatusBadRequest &&
			(request.Resource == "pods" && request.Verb == "delete" || request.Resource == "pods/eviction")
	})
	if err != nil {
		t.Fatal(err)
	}
	accounting, err := b.login(t.Context(), ledger.AllRuns()...)
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
			if run.Covers(deletion.Name, deletion.At) {
				totals.disturbed++
				t.Errorf("the operator deleted pod %s at %s, while job %s ran there", deletion.Name, deletion.At.Format(time.TimeOnly), run.Job)
			}
		}
	}
}
