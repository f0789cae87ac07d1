package validation

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "update testdata with the observed results")

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// golden returns the expected detail of the report on a candidate.
func golden(t *testing.T, version, name string) string {
	t.Helper()
	return read(t, filepath.Join("testdata", version, name+".detail"))
}

func TestExplainSlurmctldLog(t *testing.T) {
	for _, version := range versions {
		for name, candidate := range candidates {
			log := read(t, filepath.Join("testdata", version, name+".log"))
			if slices.Contains(candidate.accepted, version) || candidate.slurmd || log == "" {
				continue
			}
			t.Run(version+"/"+name, func(t *testing.T) {
				got := explain(log, "/trial/etc", candidate.contents(t))
				if *update {
					write(t, filepath.Join("testdata", version, name+".detail"), got)
				}
				if diff := cmp.Diff(golden(t, version, name), got); diff != "" {
					t.Errorf("detail (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestExplainTruncatesLongOutput(t *testing.T) {
	log := strings.Repeat("slurmctld: error: "+strings.Repeat("ä", 900)+"\n", 3) + "slurmctld: error: " +
		strings.Repeat("ö", 900) + "\n"
	if got := explain(log, "/trial/etc", nil); len(got) > maxDetail || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// Observed on a slow host: slurmctld exited while the validation run queried it.
func TestExplainIgnoresErrorsCausedByPolling(t *testing.T) {
	log := "[2026-11-15T05:36:00.000] error: [unix:/run/slurmctld/sack.socket(fd:11)] writev(11) failed: Broken pipe\n" +
		"[2026-11-15T05:36:00.000] error: Unable to set keepalive interval: Operation not supported\n" +
		"[2026-11-15T05:36:00.000] fatal: failed to initialize priority plugin\n"
	if got, want := explain(log, "/trial/etc", nil), "failed to initialize priority plugin"; got != want {
		t.Errorf("explain = %q, want %q", got, want)
	}
}

func TestExplainWithoutAReason(t *testing.T) {
	if got, want := explain("slurmctld: error: Configured MailProg is invalid\n", "/trial/etc",
		nil), "slurmctld gave no reason"; got != want {
		t.Errorf("explain = %q, want %q", got, want)
	}
}
