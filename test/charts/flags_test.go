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

// Every flag of the commands that the chart runs is set with at least one values file, so each can be set through a
// value.
func TestEveryFlagCanBeSet(t *testing.T) {
	var rendered strings.Builder
	for _, set := range sets(t, "slurm-operator") {
		manifests, err := render(t.Context(), "slurm-operator", read(t, "slurm-operator", set))
		if err != nil {
			t.Fatal(err)
		}
		rendered.WriteString(manifests)
	}
	// Log levels are in files, which override these flags at run time.
	set := append(flagName.FindAllString(rendered.String(), -1), "--log-level", "--slurm-log-level")
	for _, command := range []string{"manager", "webhook", "release"} {
		help, err := run(t.Context(), nil, "go", "run", filepath.Join(charts, "..", "cmd", "slurm-operator"), command,
			"--help")
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
