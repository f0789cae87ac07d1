//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/document"
)

// TestFirstHour runs all commands of docs/first-hour.md verbatim, in one shell, on a cluster without any of our
// objects.
func TestFirstHour(t *testing.T) {
	root, text := document.Read(t, "docs/first-hour.md")
	dir := t.TempDir() // the commands write files into the current directory, and expect the charts there
	if err := os.Symlink(filepath.Join(root, "charts"), filepath.Join(dir, "charts")); err != nil {
		t.Fatal(err)
	}
	removeEverything(t)
	t.Cleanup(func() { removeEverything(t) })
	started := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", firstHourScript(text))
	shell.Dir = dir
	out, err := shell.CombinedOutput()
	if err != nil {
		clusterNamespace.Describe(t)
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("from the first helm install to users who are separated: %.1f s\n%s", time.Since(started).Seconds(), out)
	sections := map[string]string{}
	for section := range strings.SplitSeq(string(out), "\n## ") {
		heading, text, _ := strings.Cut(section, "\n")
		sections[heading] = text
	}
	for heading, wants := range map[string][]string{
		"Log in":              {`uid=10001\(alice\) gid=10001\(alice\)`, `(?m)^/home/alice$`, `worker\* .* 3 +idle worker-\[0-2\]`},
		"Run a job":           {`(?m)^worker-[0-2]\nalice$`},
		"Run MPI":             {`(?m)^3 processes, sum of their ranks 3$`},
		"Look at the jobs":    {`alice +physics +COMPLETED`},
		"Users are separated": {`(?s)Permission denied.*Permission denied`},
	} {
		for _, want := range wants {
			if !regexp.MustCompile(want).MatchString(sections[heading]) {
				t.Errorf("the commands of %q did not print %s but\n%s", heading, want, sections[heading])
			}
		}
	}
	if strings.Contains(sections["Users are separated"], "#include") {
		t.Error("one user can read the files of another")
	}
}

// firstHourScript returns a script with the commands of all sections of a document. It prints the headings, and ends
// what it started in the background.
func firstHourScript(text string) string {
	var script strings.Builder
	script.WriteString("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n")
	for section := range strings.SplitSeq(text, "\n## ") {
		heading, _, _ := strings.Cut(section, "\n")
		fmt.Fprintf(&script, "printf '\\n## %%s\\n' %q\n", heading)
		for _, block := range document.ShellBlocks(text, heading) {
			script.WriteString(block + "\n")
		}
	}
	return script.String()
}
