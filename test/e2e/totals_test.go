//go:build e2e

package e2e_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/slurm-operator/slurm-operator/test/ledger"
)

// totals are of all stories and all faults of a run.
var totals struct {
	books, completed, requeued, lost, faults int
	// unbalanced are the ledgers of stories that failed before all jobs were accounted for. What became of these is not in the totals.
	unbalanced int
	// deletions are the pods that the operator deleted while books were kept, and disturbed those on which a job ran then.
	deletions, disturbed int
	// recoveries are how long it took after the end of each fault until all was well.
	recoveries []time.Duration
}

// enter adds the verdict of a ledger.
func enter(verdict ledger.Verdict) {
	totals.books++
	totals.completed += len(verdict.Completed)
	totals.requeued += len(verdict.Requeued)
	totals.lost += len(verdict.Lost)
}

// summary is the line that a run ends with.
func summary() string {
	text := fmt.Sprintf("%d ledgers: %d jobs completed, %d requeued, %d lost; %d pods deleted by the operator, %d of them under a job; %d faults",
		totals.books, totals.completed, totals.requeued, totals.lost, totals.deletions, totals.disturbed, totals.faults)
	if len(totals.recoveries) > 0 {
		text += ", " + recovery(totals.recoveries)
	}
	if totals.unbalanced > 0 {
		text += fmt.Sprintf("; stories that failed left %d ledgers open", totals.unbalanced)
	}
	return text
}

// recovery says how long it took until all was well again.
func recovery(times []time.Duration) string {
	sorted := slices.Sorted(slices.Values(times))
	at := func(share float64) float64 { return sorted[int(share*float64(len(sorted)-1))].Seconds() }
	return fmt.Sprintf("well again after p50 %.1f s, p95 %.1f s, at most %.1f s", at(0.5), at(0.95), at(1))
}
