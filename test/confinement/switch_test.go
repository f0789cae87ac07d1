//go:build slurm

package confinement

import (
	"context"
	"fmt"
	"strings"
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// A pod that is prepared for confinement runs with either settings. Jobs and steps start all the time, also while
// slurmd adopts settings late, and none is lost when they change. While slurmd adopts them, its successor has already
// written its files, and the slurmstepds of the one before read them: if cgroups were disabled before, and enabled in
// them, a slurmstepd would fail.
func TestNoJobIsLostWhenConfinementChanges(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		slurm, machine := start(t, version, slurmnet.MachineOptions{})
		set := newNodeSet(slinkyv1beta1.CgroupAccessRuntimeClass)
		configure(t, slurm, set, false)
		p := newPod(t, machine, set)
		p.start(t, slurm)
		waitIdle(t, slurm, p)
		long := submit(t, slurm, "while [ ! -f /tmp/finish ]; do srun --mem=10 --overlap true || exit 7; sleep 1; done",
			"--mem=20", "--job-name=long", "--output=/dev/null")
		jobs := []string{long}
		for _, confined := range []bool{true, false, true} {
			// What slurmd's successor has written when it has not taken over yet.
			machine.Write(t, "/volumes/spool/conf-cache/cgroup.conf", cgroupConf(confined))
			early := submit(t, slurm, "srun --mem=10 --overlap true", "--mem=20", "--output=/dev/null")
			waitState(t, slurm, early, "COMPLETED")
			jobs = append(jobs, early)
			// slurmctld has the settings before slurmd, so some jobs start while slurmd adopts them.
			machine.MustRun(t, "pkill -STOP -x slurmd")
			configure(t, slurm, set, confined)
			var during []string
			for range 4 {
				during = append(during, submit(t, slurm, "srun --mem=10 --overlap true", "--mem=20", "--output=/dev/null"))
			}
			machine.MustRun(t, "pkill -CONT -x slurmd")
			for _, job := range during {
				waitState(t, slurm, job, "COMPLETED")
			}
			after := submit(t, slurm, "srun --mem=10 --overlap cat /proc/self/cgroup", "--mem=20", "--output=/tmp/cgroup")
			waitState(t, slurm, after, "COMPLETED")
			if cgroup := output(t, p, "cgroup"); strings.Contains(cgroup, "/step_") != confined {
				t.Errorf("confined is %t, and a job is in the cgroup %q", confined, cgroup)
			}
			waitState(t, slurm, long, "RUNNING")
			jobs = append(append(jobs, during...), after)
		}
		machine.MustRun(t, "touch /volumes/tmp/finish")
		for _, job := range jobs {
			expectCompleted(t, slurm, job)
		}
	})
}

// expectCompleted waits until a job has completed on its first attempt.
func expectCompleted(t *testing.T, slurm *slurmnet.Cluster, job string) {
	t.Helper()
	slurm.WaitFor(t, "job "+job+" to complete", func(ctx context.Context) error {
		row, err := slurm.Run(ctx, "sacct", "--allusers", "--allocations", "--duplicates", "--noheader", "--parsable2",
			"--jobs="+job, "--format=State,Restarts")
		if err == nil && strings.TrimSpace(row) != "COMPLETED|0" {
			err = fmt.Errorf("it is %s", row)
		}
		return err
	})
}
