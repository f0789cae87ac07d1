//go:build integration

package charts_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var flagName = regexp.MustCompile(`--[a-z-]+`)

// Every flag of what the chart runs is set by it in one of the sets of values, so each can be reached through a value.
func TestEveryFlagCanBeSet(t *testing.T) {
	var rendered strings.Builder
	for _, set := range sets(t, "slurm-operator") {
		manifests, err := render(t.Context(), "slurm-operator", read(t, "slurm-operator", set))
		if err != nil {
			t.Fatal(err)
		}
		rendered.WriteString(manifests)
	}
	// The levels of the log are in files, which override these flags while the process runs.
	set := append(flagName.FindAllString(rendered.String(), -1), "--log-level", "--slurm-log-level")
	for _, command := range []string{"manager", "webhook", "release"} {
		help, err := run(t.Context(), nil, "go", "run", filepath.Join(charts, "..", "cmd", "slurm-operator"), command, "--help")
		if err != nil {
			t.Fatal(err)
		}
		_, flags, _ := strings.Cut(help, "Flags:")
		for line := range strings.Lines(flags) {
			name := flagName.FindString(line)
			if name != "" && name != "--help" && !slices.Contains(set, name) {
				t.Errorf("no value sets %s of %s", name, command)
			}
		}
	}
}
