package trial

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what was seen into testdata")

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

// golden is the detail that the report on a candidate has.
func golden(t *testing.T, version, name string) string {
	t.Helper()
	return read(t, filepath.Join("testdata", version, name+".detail"))
}

func TestExplainWhatSlurmctldSaid(t *testing.T) {
	for _, version := range versions {
		for name, candidate := range candidates {
			log := read(t, filepath.Join("testdata", version, name+".log"))
			if slices.Contains(candidate.accepted, version) || log == "" {
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

func TestExplainIsBounded(t *testing.T) {
	log := strings.Repeat("slurmctld: error: "+strings.Repeat("ä", 900)+"\n", 3) + "slurmctld: error: " + strings.Repeat("ö", 900) + "\n"
	if got := explain(log, "/trial/etc", nil); len(got) > maxDetail || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func TestExplainSilence(t *testing.T) {
	if got, want := explain("slurmctld: error: Configured MailProg is invalid\n", "/trial/etc", nil), "slurmctld gave no reason"; got != want {
		t.Errorf("explain = %q, want %q", got, want)
	}
}
