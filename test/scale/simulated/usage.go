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

// Usage is the resource usage of a daemon since its start.
type Usage struct {
	// PeakMemory is the peak of resident memory in bytes.
	PeakMemory int64
	CPU        time.Duration
}

// Daemons are the daemons of a cluster, in start order.
var Daemons = []string{
	controlplane.Etcd, controlplane.APIServer, controlplane.ControllerManager, controlplane.Scheduler, Kwok,
}

// Usage returns the usage of each daemon.
func (c *Cluster) Usage(t *testing.T) map[string]Usage {
	t.Helper()
	usage := map[string]Usage{}
	for _, name := range Daemons {
		usage[name] = c.UsageOf(t, name)
	}
	return usage
}

// UsageOf returns the usage of a process of the cluster.
func (c *Cluster) UsageOf(t *testing.T, name string) Usage {
	t.Helper()
	pid, err := c.Plane.Processes.Pid(name)
	must(t, "finding "+name, err)
	usage, err := readUsage(filepath.Join("/proc", strconv.Itoa(pid)))
	must(t, "reading the usage of "+name, err)
	return usage
}

// readUsage reads the usage of a process from its directory in /proc.
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
	// The command name may contain spaces and parentheses; the third field follows the last parenthesis.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, fmt.Errorf("%q is not the state of a process", stat)
	}
	const tick = 10 * time.Millisecond // USER_HZ, which does not depend on the kernel's HZ
	var total time.Duration
	for _, field := range []string{fields[user], fields[system]} {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the CPU time: %w", err)
		}
		total += time.Duration(ticks) * tick
	}
	return total, nil
}
