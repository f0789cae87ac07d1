// Package document reads the commands in the project's documents, for the tests that run them.
package document

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/repo"
)

// Read returns the root of the repository and the text of a document in it.
func Read(t *testing.T, name string) (root, text string) {
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

// ShellBlocks returns the shell code blocks in a section of a document.
func ShellBlocks(document, heading string) []string {
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
