//go:build slurm

package confinement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/hostlist"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// Each job has CPUs of its own, and they are the pod's, on a machine with two sockets of two cores with two threads.
func TestJobsHaveCPUsOfTheirOwn(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		slurm, machine := start(t, version, slurmnet.MachineOptions{CPUs: "8,sockets=2,cores=2,threads=2"})
		limit := 0
		for _, test := range []struct {
			name  string
			limit int
			cpus  string // of the pod, from the kubelet's static CPU manager policy
		}{
			{"all CPUs", 8, ""},
			{"a limit", 6, ""},
			{"whole cores", 4, "2-5"},
			{"other cores after a restart", 4, "4-7"},
			{"single threads after a restart", 4, "1,3,4,6"},
		} {
			t.Run(test.name, func(t *testing.T) {
				if limit != 0 && limit != test.limit { // as the operator does when a pod with another size replaces it
					slurm.Login.MustRun(t, "scontrol", "delete", "nodename="+machine.Name)
				}
				set := newNodeSet(slinkyv1beta1.CgroupAccessRemount)
				set.Spec.Slurmd.Raw = fmt.Appendf(nil, `{"resources":{"limits":{"cpu":"%d","memory":"1Gi"}}}`, test.limit)
				configure(t, slurm, set, true)
				p := newPod(t, machine, set)
				p.cores = test.cpus
				p.start(t, slurm)
				waitIdle(t, slurm, p)
				checkCPUs(t, slurm, p, test.limit, test.cpus)
				p.stop(t)
				limit = test.limit
			})
		}
	})
}

// checkCPUs runs as many jobs as the pod has CPUs at the same time.
func checkCPUs(t *testing.T, slurm *slurmnet.Cluster, p *pod, limit int, allowed string) {
	t.Helper()
	p.machine.MustRun(t, "rm -f /volumes/tmp/*")
	var jobs []string
	for i := range limit {
		jobs = append(jobs, submit(t, slurm, "grep Cpus_allowed_list /proc/self/status; while [ ! -f /tmp/finish ]; do sleep 1; done",
			"--mem=50", fmt.Sprintf("--output=/tmp/%d", i)))
	}
	for _, job := range jobs {
		waitState(t, slurm, job, "RUNNING")
	}
	p.machine.MustRun(t, "touch /volumes/tmp/finish")
	var used []int
	for i, job := range jobs {
		waitState(t, slurm, job, "COMPLETED")
		list := strings.Fields(output(t, p, strconv.Itoa(i)))[1]
		used = append(used, numbers(t, list)...)
	}
	slices.Sort(used)
	if allowed == "" {
		allowed = fmt.Sprintf("0-%d", limit-1)
	}
	if want := numbers(t, allowed); !slices.Equal(used, want) {
		t.Errorf("the jobs had the CPUs %v, want %v", used, want)
	}
}

// numbers returns the members of a list of CPUs.
func numbers(t *testing.T, list string) []int {
	t.Helper()
	var numbers []int
	for name, err := range hostlist.Names("[" + list + "]") {
		number, invalid := strconv.Atoi(name)
		if err != nil || invalid != nil {
			t.Fatalf("%s: %v, %v", list, err, invalid)
		}
		numbers = append(numbers, number)
	}
	return numbers
}
