//go:build slurm

package images_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/hack/images"
)

// features of the images, each with a role that needs it and a file that provides it.
var features = []struct{ name, role, file string }{
	{"MPI with PMI2, for MPICH", "slurmd", "usr/lib/*/slurm-wlm/mpi_pmi2.so"},
	{"MPI with PMIx, for OpenMPI", "slurmd", "usr/lib/*/slurm-wlm/mpi_pmix.so"},
	{"cgroup v2", "slurmd", "usr/lib/*/slurm-wlm/cgroup_v2.so"},
	{"ssh into jobs (pam_slurm_adopt)", "slurmd", "usr/lib/*/security/pam_slurm_adopt.so"},
	{"SSSD with LDAP, on nodes", "slurmd", "usr/lib/*/sssd/libsss_ldap.so"},
	{"SSSD with LDAP, in login pods", "login", "usr/lib/*/sssd/libsss_ldap.so"},
	{"users without a directory (libnss-extrausers)", "slurmd", "usr/lib/libnss_extrausers.so.2"},
	{"OCI containers in jobs (crun)", "slurmd", "usr/bin/crun"},
	{"OCI containers from login pods (scrun)", "login", "usr/bin/scrun"},
	{"X11 (xauth)", "slurmd", "usr/bin/xauth"},
	{"Lua in job_submit and cli_filter", "slurmctld", "usr/lib/*/liblua5.4.so.0"},
	{"private /tmp per job (job_container/tmpfs)", "slurmd", "usr/lib/*/slurm-wlm/job_container_tmpfs.so"},
	{"private /tmp per job (namespace/tmpfs)", "slurmd", "usr/lib/*/slurm-wlm/namespace_tmpfs.so"},
	{"metrics of slurmctld", "slurmctld", "usr/lib/*/slurm-wlm/metrics_openmetrics.so"},
	{"detection of NVIDIA GPUs without NVML", "slurmd", "usr/lib/*/slurm-wlm/gpu_nvidia.so"},
	{"detection of NVIDIA GPUs with NVML", "slurmd", "usr/lib/*/slurm-wlm/gpu_nvml.so"},
	{"TLS between daemons", "slurmctld", "usr/lib/*/slurm-wlm/tls_s2n.so"},
	{"job profiles in HDF5", "slurmd", "usr/lib/*/slurm-wlm/acct_gather_profile_hdf5.so"},
}

// The table of features in the documentation is read from the images.
func TestFeaturesAreDocumented(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "| | %s |\n|---|%s\n", strings.Join(images.Versions, " | "),
		strings.Repeat("---|", len(images.Versions)))
	for _, feature := range features {
		table.WriteString("| " + feature.name + " |")
		for _, version := range images.Versions {
			answer := " no |"
			if provides(t, images.Slurm(feature.role, version), feature.file) {
				answer = " yes |"
			}
			table.WriteString(answer)
		}
		table.WriteString("\n")
	}
	readme, err := os.ReadFile("../../images/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, documented, _ := strings.Cut(string(readme), "<!-- features -->\n")
	documented, _, found := strings.Cut(documented, "<!-- end of features -->")
	if diff := cmp.Diff(table.String(), documented); diff != "" || !found {
		t.Errorf("images/README.md (-images +documented):\n%s\nthe table of the images:\n%s", diff, table.String())
	}
}

// provides reports whether an image has a file; the pattern may have wildcards.
func provides(t *testing.T, image, pattern string) bool {
	t.Helper()
	unpacked, err := images.Unpack(t.Context(), image)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", image, err))
	}
	for _, layer := range unpacked.Layers {
		found, err := filepath.Glob(filepath.Join(layer, pattern))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			return true
		}
	}
	return false
}
