// Package cpus makes slurmd use the CPUs of its container.
//
// Slurm takes the CPUs of a machine from the library hwloc and numbers them by itself. A node with fewer CPUs has the
// first ones, and on a machine with hyperthreads only one of each core, so that several jobs run on the same CPU while
// others are idle. With the kubelet's static CPU manager policy, a pod may have other CPUs than the first ones, and
// every job would fail. So slurmd gets a description of the machine in which the container's CPUs are the first ones,
// and each is a core.
package cpus

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Variable is the environment variable with the file from which hwloc reads the machine, instead of from the kernel.
const Variable = "HWLOC_XMLFILE"

// Describe writes a description of the machine's CPUs for a node with a number of CPUs, or 0 if slurmd determines it.
// It reports whether slurmd needs the description.
func Describe(file string, limit int) (bool, error) {
	all, err := slurmOrder(os.DirFS("/sys/devices/system"))
	if err != nil {
		return false, fmt.Errorf("reading the CPUs of the Kubernetes node: %w", err)
	}
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		return false, fmt.Errorf("reading the container's CPUs: %w", err)
	}
	ordered, err := arrange(all, own.IsSet, limit)
	if err != nil || ordered == nil {
		return false, err
	}
	return true, os.WriteFile(file, describe(ordered), 0o644)
}

// arrange returns the CPUs of a machine, given in Slurm's order, with the container's first; nil if Slurm's order will
// do.
func arrange(all []int, isOwn func(cpu int) bool, limit int) ([]int, error) {
	own := slices.DeleteFunc(slices.Clone(all), func(cpu int) bool { return !isOwn(cpu) })
	switch {
	case len(own) == len(all) && (limit == 0 || limit >= len(all)):
		return nil, nil
	case len(own) == len(all), len(own) == limit:
		others := slices.DeleteFunc(slices.Clone(all), isOwn)
		return append(own, others...), nil
	}
	return nil, fmt.Errorf("the container may use %d of the %d CPUs of the Kubernetes node, which can change at any time, "+
		"because other pods have CPUs of their own (the kubelet's static CPU manager policy), and Slurm would run jobs on "+
		"CPUs that the container may not use; make this a guaranteed pod with a whole number of CPUs as its limit, so that "+
		"it has its own, too, or keep such pods off this Kubernetes node", len(own), len(all))
}
