//go:build e2e

package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/repo"
)

// TestQuickstart runs the commands of the README's quickstart verbatim, on a cluster without any of our objects.
func TestQuickstart(t *testing.T) {
	root, readme := readDocument(t, "README.md")
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

// readDocument returns the root of the repository and the text of a document in it.
func readDocument(t *testing.T, name string) (root, text string) {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return root, string(document)
}

// quickstart returns the commands in the README's Quickstart section.
func quickstart(readme string) []string {
	var commands []string
	for _, block := range shellBlocks(readme, "Quickstart") {
		commands = append(commands, strings.Split(block, "\n")...)
	}
	return commands
}

// shellBlocks returns the shell code blocks in a section of a document.
func shellBlocks(document, heading string) []string {
	_, section, _ := strings.Cut(document, "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var blocks []string
	for i, block := range strings.Split(section, "```") {
		if code, found := strings.CutPrefix(block, "sh\n"); found && i%2 == 1 {
			blocks = append(blocks, strings.TrimSpace(code))
		}
	}
	return blocks
}
