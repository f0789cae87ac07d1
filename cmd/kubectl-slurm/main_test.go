package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestPluginStaysSmall fails if a package that would double its size becomes part of the plugin.
func TestPluginStaysSmall(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for imported := range strings.FieldsSeq(string(out)) {
		for _, heavy := range []string{
			"sigs.k8s.io/controller-runtime", "k8s.io/client-go/kubernetes", "k8s.io/cli-runtime", "k8s.io/apiserver",
		} {
			if strings.HasPrefix(imported, heavy) {
				t.Errorf("imports %s", imported)
			}
		}
	}
}

// TestDocumentationShowsRealOutput fails if an example in the documentation is not what the plugin prints.
func TestDocumentationShowsRealOutput(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubectl-slurm.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, golden := range []string{
		"command/testdata/why-resources.txt", "command/testdata/top.txt", "command/testdata/config-check.txt",
		"doctor/testdata/findings.txt",
	} {
		output, err := os.ReadFile("../../internal/plugin/" + golden)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "```\n"+string(output)+"```\n") {
			t.Errorf("docs/kubectl-slurm.md does not show %s", golden)
		}
	}
	for _, picture := range []string{"status", "why", "plan"} { // drawn from golden files by hack/pictures
		if !strings.Contains(string(page), "](pictures/"+picture+".svg)") {
			t.Errorf("docs/kubectl-slurm.md does not show the picture of %s", picture)
		}
	}
}
