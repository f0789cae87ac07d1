//go:build e2e

package e2e_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/slurm-operator/slurm-operator/test/ledger"
)

// totals sums up all tests and faults of a run.
var totals struct {
	ledgers, completed, requeued, lost, faults int
	// unchecked counts the ledgers of tests that failed before all jobs were checked. Their jobs are not in the totals.
	unchecked int
	// deletions counts the pods that the operator deleted during the tests, and disturbed those that had a running job.
	deletions, disturbed int
	// recoveries are the recovery times after all faults.
	recoveries []time.Duration
}

// addToTotals adds the verdict of a ledger.
func addToTotals(verdict ledger.Verdict) {
	totals.ledgers++
	totals.completed += len(verdict.Completed)
	totals.requeued += len(verdict.Requeued)
	totals.lost += len(verdict.Lost)
}

// summary returns the last line of a run.
func summary() string {
	text := fmt.Sprintf(
		"%d ledgers: %d jobs completed, %d requeued, %d lost; %d pods deleted by the operator, %d of them under a "+
			"job; %d faults",
		totals.ledgers, totals.completed, totals.requeued, totals.lost, totals.deletions, totals.disturbed, totals.faults)
	if len(totals.recoveries) > 0 {
		text += ", " + recovery(totals.recoveries)
	}
	if totals.unchecked > 0 {
		text += fmt.Sprintf("; %d ledgers of failed tests were not checked", totals.unchecked)
	}
	return text
}

// recovery summarizes recovery times.
func recovery(times []time.Duration) string {
	sorted := slices.Sorted(slices.Values(times))
	at := func(share float64) float64 { return sorted[int(share*float64(len(sorted)-1))].Seconds() }
	return fmt.Sprintf("recovery time p50 %.1f s, p95 %.1f s, max %.1f s", at(0.5), at(0.95), at(1))
}
