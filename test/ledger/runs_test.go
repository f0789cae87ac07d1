package ledger_test

import (
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/ledger"
)

func TestRuns(t *testing.T) {
	runs, err := ledger.ParseRuns(`1|gpu-[0-1]|2026-01-01T10:00:00|2026-01-01T10:00:05
2|gpu-2|2026-01-01T10:00:00|Unknown
3|None assigned|Unknown|Unknown
4|None assigned|None|2026-01-01T10:00:05
`)
	if err != nil || len(runs) != 2 {
		t.Fatalf("%+v: %v", runs, err)
	}
	ten := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		run   int
		node  string
		after time.Duration
		want  bool
	}{
		{0, "gpu-0", 500 * time.Millisecond, false}, // it may have started later
		{0, "gpu-0", time.Second, true},
		{0, "gpu-1", 4900 * time.Millisecond, true},
		{0, "gpu-1", 5 * time.Second, false},
		{0, "gpu-2", 3 * time.Second, false},
		{1, "gpu-2", time.Hour, true},
	} {
		if got := runs[test.run].Covers(test.node, ten.Add(test.after)); got != test.want {
			t.Errorf("job %s on %s after %s: %v", runs[test.run].Job, test.node, test.after, got)
		}
	}
	for _, invalid := range []string{"sacct: error", "1|gpu-[|2026-01-01T10:00:00|Unknown", "1|gpu-0|now|Unknown",
		"1|gpu-0|2026-01-01T10:00:00|soon"} {
		if _, err := ledger.ParseRuns(invalid); err == nil {
			t.Errorf("%q is accepted as an accounting record", invalid)
		}
	}
}
