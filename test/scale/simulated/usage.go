package simulated

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/cluster/controlplane"
)

// Usage is what a daemon has used since it was started.
type Usage struct {
	// PeakMemory is the most bytes that were resident at once.
	PeakMemory int64
	CPU        time.Duration
}

// Daemons are the daemons of a cluster, in the order in which they start.
var Daemons = []string{controlplane.Etcd, controlplane.APIServer, controlplane.ControllerManager, controlplane.Scheduler, Kwok}

// Usage is what each of the daemons has used.
func (c *Cluster) Usage(t *testing.T) map[string]Usage {
	t.Helper()
	usage := map[string]Usage{}
	for _, name := range Daemons {
		usage[name] = c.UsageOf(t, name)
	}
	return usage
}

// UsageOf is what one process of the cluster's has used.
func (c *Cluster) UsageOf(t *testing.T, name string) Usage {
	t.Helper()
	pid, err := c.Plane.Processes.Pid(name)
	must(t, "finding "+name, err)
	usage, err := readUsage(filepath.Join("/proc", strconv.Itoa(pid)))
	must(t, "reading the usage of "+name, err)
	return usage
}

// readUsage reads a process's directory below /proc.
func readUsage(dir string) (usage Usage, err error) {
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return Usage{}, err
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return Usage{}, err
	}
	if usage.PeakMemory, err = peakMemory(string(status)); err != nil {
		return Usage{}, err
	}
	usage.CPU, err = cpuTime(string(stat))
	return usage, err
}

func peakMemory(status string) (int64, error) {
	_, rest, _ := strings.Cut(status, "\nVmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(line, "kB")), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the peak of resident memory: %w", err)
	}
	return kilobytes << 10, nil
}

// cpuTime adds the time that a process has spent in user and kernel mode.
func cpuTime(stat string) (time.Duration, error) {
	// The command name may hold spaces and parentheses; the fields after the last parenthesis are the third and on.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, fmt.Errorf("%q is not the state of a process", stat)
	}
	const tick = 10 * time.Millisecond // the unit of Linux's interface, whatever the kernel's own is
	var total time.Duration
	for _, field := range []string{fields[user], fields[system]} {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the time on the processor: %w", err)
		}
		total += time.Duration(ticks) * tick
	}
	return total, nil
}
