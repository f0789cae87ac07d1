//go:build slurm

package contract

import (
	"strconv"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// realSlurm is a cluster of Slurm's own daemons.
type realSlurm struct {
	*slurmnet.Cluster
	version string
}

func (r realSlurm) url() string              { return r.URL }
func (r realSlurm) old() bool                { return r.version == "24.11" }
func (r realSlurm) token(user string) string { return r.Token(user) }

func (r realSlurm) briefToken(t *testing.T) string {
	t.Helper()
	output := r.command(t, "scontrol", "token", "username=root", "lifespan=2")
	_, token, ok := strings.Cut(strings.TrimSpace(output), "=")
	if !ok {
		t.Fatalf("scontrol token printed %q", output)
	}
	return token
}

func (r realSlurm) suspend(t *testing.T, job int64) {
	t.Helper()
	r.command(t, "scontrol", "suspend", strconv.FormatInt(job, 10))
}

func (r realSlurm) resume(t *testing.T, job int64) {
	t.Helper()
	r.command(t, "scontrol", "resume", strconv.FormatInt(job, 10))
}

func (r realSlurm) command(t *testing.T, args ...string) string {
	t.Helper()
	output, err := r.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func (r realSlurm) stopController(t *testing.T)  { t.Helper(); r.Slurmctld.Stop(t) }
func (r realSlurm) startController(t *testing.T) { t.Helper(); r.Slurmctld.Start(t) }

func TestRealSlurm(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			// Without memory as a resource, a suspended job leaves no trace in its node's record.
			cluster := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 2, ExtraConf: "SelectTypeParameters=CR_CPU"})
			run(t, realSlurm{cluster, version})
		})
	}
}
