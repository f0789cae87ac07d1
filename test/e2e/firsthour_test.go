//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/document"
)

// TestFirstHour runs all commands of docs/first-hour.md verbatim, in one shell, on a cluster without any of our
// objects.
func TestFirstHour(t *testing.T) {
	_, text := document.Read(t, "docs/first-hour.md")
	sections := runTutorial(t, tutorialScript(text))
	printed(t, sections, map[string][]string{
		"Log in":              {`uid=10001\(alice\) gid=10001\(alice\)`, `(?m)^/home/alice$`, `worker\* .* 3 +idle worker-\[0-2\]`},
		"Run a job":           {`(?m)^worker-[0-2]\nalice$`},
		"Run MPI":             {`(?m)^3 processes, sum of their ranks 3$`},
		"Look at the jobs":    {`alice +physics +COMPLETED`},
		"Users are separated": {`(?s)Permission denied.*Permission denied`},
	})
	if strings.Contains(sections["Users are separated"], "#include") {
		t.Error("one user can read the files of another")
	}
}

// TestSecondHour runs all commands of docs/second-hour.md verbatim, after those of docs/first-hour.md that it needs.
func TestSecondHour(t *testing.T) {
	(&slurmCluster{namespace: clusterNamespace}).advertiseGPUs(t, 1)
	_, first := document.Read(t, "docs/first-hour.md")
	_, second := document.Read(t, "docs/second-hour.md")
	printed(t, runTutorial(t, tutorialScript(first, "Install", "Log in")+tutorialScript(second)), map[string][]string{
		"Add GPU nodes":      {`(?m)^worker\* .* 2 +idle worker-\[0-1\]$`, `(?m)^gpu .* 2 +idle~ gpu-\[0-1\]$`},
		"Run a job on a GPU": {`(?m)^gpu-0\nGPU 0$`, `(?m)^gpu +True .* 2 `, `(?m)^gpu .* idle[~%] gpu-(0|\[0-1\])$`},
		"Upgrade under a running job": {
			`(?m)^worker-0 +slurm-operator/slurmd:26.05\nworker-1 +slurm-operator/slurmd:26.05$`,
			`(?m)^ *long +COMPLETED +00:01:0`,
		},
	})
}

// printed checks that the commands of sections printed what they should.
func printed(t *testing.T, sections map[string]string, wanted map[string][]string) {
	t.Helper()
	for heading, wants := range wanted {
		for _, want := range wants {
			if !regexp.MustCompile(want).MatchString(sections[heading]) {
				t.Errorf("the commands of %q did not print %s but\n%s", heading, want, sections[heading])
			}
		}
	}
}

// runTutorial runs a script next to the charts, and returns what it printed by section.
func runTutorial(t *testing.T, script string) map[string]string {
	t.Helper()
	root, _ := document.Read(t, "docs/first-hour.md")
	dir := t.TempDir() // the commands write files into the current directory, and expect the charts there
	if err := os.Symlink(filepath.Join(root, "charts"), filepath.Join(dir, "charts")); err != nil {
		t.Fatal(err)
	}
	removeEverything(t)
	t.Cleanup(func() { removeEverything(t) })
	started := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	script = "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + script
	shell := exec.CommandContext(ctx, "bash", "-c", script)
	shell.Dir = dir
	out, err := shell.CombinedOutput()
	if err != nil {
		clusterNamespace.Describe(t)
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("all commands: %.1f s\n%s", time.Since(started).Seconds(), out)
	sections := map[string]string{}
	for section := range strings.SplitSeq(string(out), "\n## ") {
		heading, text, _ := strings.Cut(section, "\n")
		sections[heading] = text
	}
	return sections
}

// tutorialScript returns a script with the commands of sections of a document, by default of all. It prints the
// headings.
func tutorialScript(text string, only ...string) string {
	var script strings.Builder
	for section := range strings.SplitSeq(text, "\n## ") {
		heading, _, _ := strings.Cut(section, "\n")
		if len(only) > 0 && !slices.Contains(only, heading) {
			continue
		}
		fmt.Fprintf(&script, "printf '\\n## %%s\\n' %q\n", heading)
		for _, block := range document.ShellBlocks(text, heading) {
			script.WriteString(block + "\n")
		}
	}
	return script.String()
}
