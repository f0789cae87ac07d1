package images

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The commands in the documentation give images the names that the charts look for.
func TestDocumentedCommandsBuildEveryImage(t *testing.T) {
	assertDocument(t, "images/README.md",
		"--tag "+Operator+" ", "--tag "+MariaDB+" ", "for role in "+strings.Join(roles, " ")+";",
		"--target $role --tag "+Slurm("$role", Versions[0])+" ")
}

// The documentation claims the versions that the tests run, and no others.
func TestSupportedVersionsAreThoseOfTheTests(t *testing.T) {
	modules, err := filepath.Glob("../binaries/kubernetes-*")
	if err != nil {
		t.Fatal(err)
	}
	var minors []string
	for _, module := range modules {
		minors = append(minors, strings.TrimPrefix(filepath.Base(module), "kubernetes-"))
	}
	slices.Sort(minors)
	slices.Reverse(minors)
	kubernetes, slurm := strings.Join(minors, ", "), strings.Join(Versions, ", ")
	assertDocument(t, "docs/support.md", "\n| Kubernetes | "+kubernetes+" |", "\n| Slurm | "+slurm+" |")
	assertDocument(t, "README.md", "\n| "+kubernetes+" | "+slurm+" |")
}

func assertDocument(t *testing.T, name string, parts ...string) {
	t.Helper()
	document, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		if !strings.Contains(string(document), part) {
			t.Errorf("%s does not have %q", name, strings.TrimSpace(part))
		}
	}
}
