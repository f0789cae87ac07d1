//go:build slurm

package confinement

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// foreignCgroupConf is a cgroup.conf of another operator, which runs slurmd in a privileged container.
const foreignCgroupConf = "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\nConstrainCores=yes\nConstrainRAMSpace=yes\n" +
	"ConstrainSwapSpace=yes\nConstrainDevices=yes\n"

// A cluster whose jobs another operator has confined keeps its cgroup.conf until the last slurmd of that operator is
// replaced. No job is lost on the way: neither on the old pod, nor on the new one when the settings change.
func TestConfinedClusterOfAnotherOperatorIsTakenOver(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		slurm, machine := start(t, version, slurmnet.MachineOptions{})
		set := newNodeSet(slinkyv1beta1.CgroupAccessPrivileged)
		theirs := settings{confined: true, enabled: true, cgroupConf: foreignCgroupConf}
		configure(t, slurm, set, theirs)
		foreign := newPod(t, machine, set)
		foreign.container.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		foreign.container.Command = []string{
			"/usr/bin/tini", "--", "/usr/sbin/slurmd", "-D", "-Z", "--conf-server", "slurmctld:6817", "--conf",
			"CPUs=2 RealMemory=378 Feature=gpu",
		}
		foreign.container.Args = nil
		foreign.start(t, slurm)
		waitIdle(t, slurm, foreign)
		const loop = "while [ ! -f /tmp/finish ]; do srun --mem=10 --overlap true || exit 7; sleep 1; done"
		old := submit(t, slurm, loop, "--mem=20", "--output=/dev/null")
		waitState(t, slurm, old, "RUNNING")

		configure(t, slurm, set, theirs) // as slurmctld does when it is taken over
		runConfined(t, slurm, foreign)
		waitState(t, slurm, old, "RUNNING")
		machine.MustRun(t, "touch /volumes/tmp/finish")
		expectCompleted(t, slurm, old)
		foreign.stop(t)
		machine.MustRun(t, "rm /volumes/tmp/finish")

		own := newPod(t, machine, set)
		own.start(t, slurm)
		waitIdle(t, slurm, own)
		young := submit(t, slurm, loop, "--mem=20", "--output=/dev/null")
		waitState(t, slurm, young, "RUNNING")
		runConfined(t, slurm, own)
		configure(t, slurm, set, settings{confined: true, enabled: true})
		runConfined(t, slurm, own)
		waitState(t, slurm, young, "RUNNING")
		machine.MustRun(t, "touch /volumes/tmp/finish")
		expectCompleted(t, slurm, young)
	})
}

// runConfined checks that a job completes and is confined.
func runConfined(t *testing.T, slurm *slurmnet.Cluster, p *pod) {
	t.Helper()
	job := submit(t, slurm, "srun --mem=10 --overlap cat /proc/self/cgroup", "--mem=20", "--output=/tmp/cgroup")
	expectCompleted(t, slurm, job)
	if cgroup := output(t, p, "cgroup"); !strings.Contains(cgroup, "/step_") {
		t.Errorf("a job is in the cgroup %q", cgroup)
	}
}
