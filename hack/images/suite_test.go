package images

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/test/debian"
)

// slurmIn returns a suite with a version of Slurm.
func slurmIn(version string) debian.Package {
	return debian.Package{Name: "slurm-client", Source: "slurm-wlm", Version: version}
}

// A version of Slurm is found in whichever suite has it; if none does, the build says in one sentence what there is.
func TestSlurmIsFoundWhereDebianHasIt(t *testing.T) {
	for name, test := range map[string]struct {
		suites  map[string]string // Slurm's version by suite
		version string
		suite   string // selected, if it is not the base's
		want    string // the version, or the message
	}{
		"the base has it": {
			map[string]string{"trixie": "24.11.5-4", "forky": "26.05.5-1", "sid": "26.05.6-1"}, "24.11.*",
			"", "24.11.5-4",
		},
		"testing has it": {
			map[string]string{"trixie": "24.11.5-4", "forky": "26.05.5-1+b1", "sid": "26.05.6-1"}, "26.05.*",
			"forky", "26.05.5-1+b1",
		},
		"testing has moved on": {
			map[string]string{"trixie": "24.11.5-4", "forky": "26.11.1-1", "sid": "26.05.6-1"}, "26.05.*",
			"sid", "26.05.6-1",
		},
		"all suites have moved on": {
			map[string]string{"trixie": "24.11.5-4", "forky": "26.11.1-1", "sid": "26.11.2-1"}, "26.05.*",
			"", "slurm-suite: Debian has no Slurm 26.05.*, but 24.11.5-4 in trixie, 26.11.1-1 in forky, 26.11.2-1 in sid: " +
				"set SLURM_VERSION to what it has, or SLURM_SUITE to a suite that has 26.05.* (in images/slurm/Dockerfile; " +
				"the tests set SLURM_VERSION from Versions in hack/images/images.go)",
		},
		"an exact version has left, and the archive has no unstable": {
			map[string]string{"trixie": "24.11.5-4", "forky": "26.05.6-1"}, "26.05.5-1",
			"", "slurm-suite: Debian has no Slurm 26.05.5-1, but 24.11.5-4 in trixie, 26.05.6-1 in forky, nothing readable " +
				"in sid: set SLURM_VERSION to what it has, or SLURM_SUITE to a suite that has 26.05.5-1 (in " +
				"images/slurm/Dockerfile; the tests set SLURM_VERSION from Versions in hack/images/images.go)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			archive := debian.Archive(t.TempDir())
			for suite, version := range test.suites {
				archive.Publish(t, suite, slurmIn(version))
			}
			etc := archive.Use(t, "trixie")
			err := run(t.Context(), "../../images/slurm/slurm-suite", test.version, "forky", "sid")
			if strings.HasPrefix(test.want, "slurm-suite: ") {
				if err == nil || err.Error() != test.want {
					t.Errorf("got error %v\nwant %s", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sources, err := os.ReadFile(filepath.Join(etc, "sources.list.d/slurm.list"))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			_, suite, _ := strings.Cut(strings.TrimSuffix(string(sources), " main\n"), string(archive)+"/ ")
			if suite != test.suite {
				t.Errorf("got sources %q, want suite %q", sources, test.suite)
			}
			candidate, err := exec.CommandContext(t.Context(), "apt-cache", "policy", "slurm-client").Output()
			if err != nil || !strings.Contains(string(candidate), "Candidate: "+test.want+"\n") {
				t.Errorf("%v: apt would install %s", err, candidate)
			}
		})
	}
}
