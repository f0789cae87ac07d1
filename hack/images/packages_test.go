package images

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestVersionsOfPackagesAreRecorded(t *testing.T) {
	dir, list := t.TempDir(), filepath.Join(t.TempDir(), "list")
	g := group{args: map[string]string{"SLURM_VERSION": "26.05.*"}, targets: map[string]string{}}
	add := func(role, packages string) {
		t.Helper()
		write(t, list, "Debian 13.7 trixie\n"+packages)
		g.targets[Slurm(role, "26.05")] = role
		if err := (Scratch{Files: map[string]string{"/" + packagesFile: list}}).AddTo(dir, Slurm(role, "26.05")); err != nil {
			t.Fatal(err)
		}
	}
	add("slurmctld", "slurm-client 26.05.5-1 testing\nslurmctld 26.05.5-1 testing\n")
	add("slurmd", "libhwloc15 2.15.0-2 testing\nslurm-client 26.05.5-1 testing\nslurmd 26.05.5-1 testing\n")
	var log strings.Builder
	if err := g.logPackages(&log, layout(dir)); err != nil || log.String() != "" {
		t.Errorf("an image without a record: %q, %v", log.String(), err)
	}
	if err := layout(dir).recordPackages(); err != nil {
		t.Fatal(err)
	}
	image, err := layout(dir).find(Slurm("slurmctld", "26.05"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "Debian 13.7 trixie, slurm-client 26.05.5-1 testing, slurmctld 26.05.5-1 testing"
	if got := image.Annotations[packagesAnnotation]; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	const line = "images of Slurm 26.05.*: Debian 13.7 trixie, libhwloc15 2.15.0-2 testing, " +
		"slurm-client 26.05.5-1 testing, slurmctld 26.05.5-1 testing, slurmd 26.05.5-1 testing\n"
	if err := g.logPackages(&log, layout(dir)); err != nil || log.String() != line {
		t.Errorf("got %q, %v, want %q", log.String(), err, line)
	}
}
