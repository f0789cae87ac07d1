//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/ledger"
)

// books are kept on the jobs that users submit while a story goes on.
type books struct {
	*slurmCluster
	jobs ledger.Stream
	// accepted are the numbers of the jobs, as far as they are read.
	accepted string
}

// usersSubmit lets users submit one job after another to a partition, until the books are closed.
func (c *slurmCluster) usersSubmit(t *testing.T, name, partition string) *books {
	t.Helper()
	books := &books{slurmCluster: c, jobs: ledger.Stream{Name: name, Partition: partition, Lengths: []int{2, 9, 1, 4, 7}}}
	if _, err := c.login(t.Context(), books.jobs.Start()...); err != nil {
		t.Fatal(err)
	}
	return books
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
	enter(verdict)
	t.Logf("%s: %s", b.version, verdict)
	if len(verdict.Lost)+len(verdict.Requeued) > 0 || len(verdict.Completed) == 0 {
		t.Errorf("the ledger says: %s", verdict)
	}
	return verdict
}
