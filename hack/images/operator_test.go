package images_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/repo"
)

// R31: whichever stage of its Dockerfile the operator's image is built from, it runs as a numeric non-root user:
// Kubernetes cannot check a name.
func TestOperatorIsNotRoot(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "images", "operator", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	final := 0
	for _, stage := range strings.Split("\n"+string(content), "\nFROM ")[1:] {
		if !strings.Contains(stage, "\nENTRYPOINT ") {
			continue // a build stage
		}
		final++
		base, _, _ := strings.Cut(stage, "\n")
		if name, _, _ := strings.Cut(base, " "); name != "scratch" {
			t.Errorf("the image is built on %s", name)
		}
		_, user, _ := strings.Cut(stage, "\nUSER ")
		user, _, _ = strings.Cut(user, "\n")
		for id := range strings.SplitSeq(user, ":") {
			if number, err := strconv.Atoi(id); err != nil || number <= 0 {
				t.Errorf("the image on %s runs as %q", base, user)
			}
		}
	}
	if final != 2 {
		t.Errorf("the Dockerfile has %d stages that run the operator", final)
	}
}
