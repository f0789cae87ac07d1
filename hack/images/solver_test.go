//go:build slurm

package images_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/test/debian"
)

// Libraries that Slurm needs in another version than the base has, or that the base does not have, come from Slurm's
// suite, whatever their names. Nothing else does.
func TestLibrariesComeFromTheSuiteOfSlurm(t *testing.T) {
	slurm := func(name, depends string) debian.Package {
		return debian.Package{Name: name, Source: "slurm-wlm", Version: "26.05.6-1", Depends: depends}
	}
	archive := debian.Archive(t.TempDir())
	archive.Publish(t, "trixie",
		debian.Package{Name: "slurm-client", Source: "slurm-wlm", Version: "24.11.5-4"},
		debian.Package{Name: "libllhttp9.2", Source: "llhttp", Version: "9.2"},
		debian.Package{Name: "libhwloc15", Source: "hwloc", Version: "2.12"},
		debian.Package{Name: "libjson-c5", Source: "json-c", Version: "0.18"},
		debian.Package{Name: "libmunge2", Source: "munge", Version: "0.5.16"},
		debian.Package{Name: "liblua5.4-0", Source: "lua5.4", Version: "5.4.7"})
	archive.Publish(t, "forky",
		slurm("slurm-client", "libmunge2 (>= 0.5)"),
		slurm("slurmd", "slurm-client (= 26.05.6-1), libllhttp9.5 (>= 9.5), libhwloc15 (>= 2.15), libjson-c5 (>= 0.19)"),
		debian.Package{Name: "libllhttp9.5", Source: "llhttp", Version: "9.5"},
		debian.Package{Name: "libhwloc15", Source: "hwloc", Version: "2.15"},
		debian.Package{Name: "libjson-c5", Source: "json-c", Version: "0.19"},
		debian.Package{Name: "libmunge2", Source: "munge", Version: "0.5.18"},
		debian.Package{Name: "liblua5.4-0", Source: "lua5.4", Version: "5.4.8"})
	output := inBase(t, archive, `
slurm-suite '26.05.*' forky sid
install-packages slurmd liblua5.4-0`)
	var got []string
	for _, install := range regexp.MustCompile(`(?m)^Inst (\S+) .*\((\S+)`).FindAllStringSubmatch(output, -1) {
		got = append(got, install[1]+" "+install[2])
	}
	slices.Sort(got)
	want := []string{
		"libhwloc15 2.15", "libjson-c5 0.19", "libllhttp9.5 9.5", "liblua5.4-0 5.4.7", "libmunge2 0.5.16",
		"slurm-client 26.05.6-1", "slurmd 26.05.6-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages (-want +got):\n%s\n%s", diff, output)
	}
}

// inBase runs a script in a copy of the base of the images with the scripts of Slurm's images, and an apt that knows
// only an archive and installs nothing. It returns the output.
func inBase(t *testing.T, archive debian.Archive, script string) string {
	t.Helper()
	image, err := images.Unpack(t.Context(), images.Slurm("slurmctld", images.Versions[0]))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for path, content := range map[string]string{
		"etc/apt/sources.list":       debian.Source("/archive", "trixie"),
		"etc/apt/apt.conf.d/archive": debian.Insecure + "APT::Get::Simulate \"true\";\n",
	} {
		file := filepath.Join(root, "upper", path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	scripts, err := filepath.Abs("../../images/slurm")
	if err != nil {
		t.Fatal(err)
	}
	inside := fmt.Sprintf(`
mkdir --parents upper/archive upper/scripts work merged
mount -t overlay -o "lowerdir=%s,upperdir=upper,workdir=work" overlay merged
mount --bind %s merged/archive
mount --bind %s merged/scripts
PATH=/scripts:$PATH chroot merged sh -euc "$1" 2>&1`, image.Layers[0], archive, scripts)
	command := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-euc", inside, "sh", script)
	command.Dir = root
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return string(output)
}
