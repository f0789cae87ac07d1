package cgroups

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLowerScore(t *testing.T) {
	for before, want := range map[string]string{"998\n": "0", "0\n": "0\n", "-997\n": "-997\n"} {
		file := filepath.Join(t.TempDir(), "oom_score_adj")
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := lowerScore(file); err != nil {
			t.Error(err)
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != want {
			t.Errorf("%q becomes %q, %v; want %q", before, after, err, want)
		}
	}
}
