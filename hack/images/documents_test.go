package images

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
)

// The commands in the documentation give images the names that the charts look for.
func TestDocumentedCommandsBuildEveryImage(t *testing.T) {
	assertDocument(t, "images/README.md",
		"--tag "+Operator+" ", "--tag "+MariaDB+" ", "for role in "+strings.Join(roles, " ")+";",
		"--target $role --tag "+Slurm("$role", Versions[0])+" ")
}

// The documentation claims the versions that the tests run, and no others.
func TestSupportedVersionsAreThoseOfTheTests(t *testing.T) {
	kubernetes, slurm := strings.Join(testedMinors(t), ", "), strings.Join(Versions, ", ")
	assertDocument(t, "docs/support.md", "\n| Kubernetes | "+kubernetes+" |", "\n| Slurm | "+slurm+" |")
	assertDocument(t, "README.md", "\n| "+kubernetes+" | "+slurm+" |")
}

// testedMinors returns the versions of Kubernetes for which the documentation has a run of the tests: the newest, which
// every change is tested with, and others with the date of their last run. Each must have a row with the version that
// is built, and with the command of the nightly workflow.
func testedMinors(t *testing.T) []string {
	t.Helper()
	support := read(t, "docs/support.md")
	dated := regexp.MustCompile(`^20\d\d-\d\d-\d\d`)
	var tested []string
	for i, minor := range binaries.Minors {
		module := read(t, "hack/binaries/kubernetes-"+minor+"/go.mod")
		version := regexp.MustCompile(`k8s\.io/kubernetes v(\S+)`).FindStringSubmatch(module)[1]
		command := ".ci/run"
		if i > 0 {
			command = "make test-integration test-charts test-e2e KUBERNETES=" + minor
			assertDocument(t, ".github/workflows/nightly.yaml", " run: "+command+"\n", `"kubernetes-`+minor+`"`)
		}
		row := "\n| " + version + " | `" + command + "` | "
		_, last, found := strings.Cut(support, row)
		last, _, _ = strings.Cut(last, " |\n")
		switch {
		case !found:
			t.Errorf("docs/support.md does not have %q", strings.TrimSpace(row))
		case i == 0 && last != "every change", i > 0 && last != "none yet" && !dated.MatchString(last):
			t.Errorf("docs/support.md has no date of the last run with %s, and not \"none yet\": %q", version, last)
		case last != "none yet":
			tested = append(tested, minor)
		}
	}
	return tested
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func assertDocument(t *testing.T, name string, parts ...string) {
	t.Helper()
	document := read(t, name)
	for _, part := range parts {
		if !strings.Contains(document, part) {
			t.Errorf("%s does not have %q", name, strings.TrimSpace(part))
		}
	}
}
