package command

import (
	"regexp"
	"testing"

	"github.com/slurm-operator/slurm-operator/test/golden"
)

var escapeSequence = regexp.MustCompile("\x1b\\[[0-9]*m")

// TestPictures compares what the pictures of the documentation show (hack/pictures) with the output on a terminal.
func TestPictures(t *testing.T) {
	for name, arguments := range map[string][]string{
		"status": {"status"},
		"why":    {"why", "gpu-3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", "")
			t.Setenv("CLICOLOR_FORCE", "1")
			coloured, err := run(t, loaded(t, "cluster.yaml", "pods.yaml"), arguments...)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name+".ansi", coloured)
			t.Setenv("CLICOLOR_FORCE", "")
			plain, err := run(t, loaded(t, "cluster.yaml", "pods.yaml"), arguments...)
			if err != nil || escapeSequence.ReplaceAllString(coloured, "") != plain {
				t.Errorf("without colours it differs: %v\n%s", err, plain)
			}
		})
	}
}
