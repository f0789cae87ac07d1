//go:build e2e

package e2e_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/document"
)

// TestQuickstart runs the commands of the README's quickstart verbatim, on a cluster without any of our objects.
func TestQuickstart(t *testing.T) {
	root, readme := document.Read(t, "README.md")
	commands := quickstart(readme)
	if len(commands) != 5 {
		t.Fatalf("the README promises four commands and srun, and has %d: %q", len(commands), commands)
	}
	removeEverything(t)
	t.Cleanup(func() { removeEverything(t) })
	started := time.Now()
	var out, problems bytes.Buffer
	for _, command := range commands {
		out.Reset()
		shell := exec.CommandContext(t.Context(), "bash", "-c", command)
		shell.Dir, shell.Stdout, shell.Stderr = root, &out, &problems
		if err := shell.Run(); err != nil {
			clusterNamespace.Describe(t)
			t.Fatalf("%s: %v\n%s", command, err, &problems)
		}
		t.Logf("%6.1f s: %s", time.Since(started).Seconds(), command)
	}
	if got := strings.TrimSpace(out.String()); got != "worker-0" {
		t.Errorf("srun hostname printed %q", got)
	}
	clusterNamespace.MustRun(t, "exec", "deployment/login", "--", "getent", "hosts", "worker-0") // by its short name
	t.Logf("from the first helm install to the output of srun: %.1f s", time.Since(started).Seconds())
}

// quickstart returns the commands in the README's Quickstart section.
func quickstart(readme string) []string {
	var commands []string
	for _, block := range document.ShellBlocks(readme, "Quickstart") {
		commands = append(commands, strings.Split(block, "\n")...)
	}
	return commands
}
