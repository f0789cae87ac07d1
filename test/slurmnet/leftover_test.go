//go:build slurm

package slurmnet

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// traces are the link and the namespaces of a cluster.
type traces struct {
	link       string
	namespaces []string
}

func (c *Cluster) traces(t *testing.T) traces {
	t.Helper()
	processes := []*process{c.sandbox.init}
	for _, daemon := range c.daemons {
		processes = append(processes, daemon.init)
	}
	found := traces{link: c.sandbox.link()}
	for _, process := range processes {
		for _, kind := range []string{"pid", "net", "mnt"} {
			namespace, err := os.Readlink(process.namespace(kind))
			if err != nil {
				t.Fatal(err)
			}
			found.namespaces = append(found.namespaces, namespace)
		}
	}
	return found
}

// left returns an error if anything still exists that existed at a time. A namespace without processes and bind mounts
// is gone, and the kernel may give its number to a new one, whose processes have been started since.
func (want traces) left(at uptime) error {
	if _, err := net.InterfaceByName(want.link); err == nil {
		return fmt.Errorf("link %s exists", want.link)
	}
	links, err := filepath.Glob("/proc/[0-9]*/ns/*")
	if err != nil {
		return err
	}
	for _, link := range links {
		process := filepath.Dir(filepath.Dir(link))
		// A process may exit meanwhile, which is fine.
		if namespace, err := os.Readlink(link); err == nil && slices.Contains(want.namespaces, namespace) &&
			startOf(process) < at {
			command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
			return fmt.Errorf("%s is %s; the test is process %d, and this one runs %q", link, namespace, os.Getpid(),
				command)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for _, namespace := range want.namespaces {
		if strings.Contains(string(mounts), namespace) {
			return fmt.Errorf("%s is mounted", namespace)
		}
	}
	return nil
}

// An uptime is a time since the computer was started, in the kernel's ticks of 10 ms.
type uptime int64

func now(t *testing.T) uptime {
	t.Helper()
	var since unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
		t.Fatal(err)
	}
	return uptime(since.Nano() / (10 * time.Millisecond).Nanoseconds())
}

// startOf returns when a process was started, given its directory in /proc; the latest time for none.
func startOf(process string) uptime {
	stat, err := os.ReadFile(filepath.Join(process, "stat"))
	// The name of the program, in parentheses, may contain spaces. The time is the 22nd field, the name the second.
	_, fields, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	if values := strings.Fields(fields); err == nil && len(values) > 19 {
		if start, err := strconv.ParseInt(values[19], 10, 64); err == nil {
			return uptime(start)
		}
	}
	return math.MaxInt64
}

// aloneEnv tells a test that it runs in a mount namespace of its own.
const aloneEnv = "SLURMNET_TEST_ALONE"

func TestStoppedClusterLeavesNothing(t *testing.T) {
	if os.Getenv(aloneEnv) == "" {
		alone := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		alone.Env = append(os.Environ(), aloneEnv+"=yes")
		alone.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		if output, err := alone.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return
	}
	mountsBefore, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var traces traces
	var stopped uptime
	t.Run("cluster", func(t *testing.T) {
		cluster := Start(t, Options{Version: "26.05", Nodes: 2})
		mustRun(t, cluster, "sbatch", "--wrap", "sleep 1000")
		traces, stopped = cluster.traces(t), now(t)
	})
	if err := traces.left(stopped); err != nil {
		t.Error(err)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil ||
		strings.Count(string(mounts), "\n") > strings.Count(string(mountsBefore), "\n") {
		t.Errorf("there are more mounts than before (%v):\n%s", err, mounts)
	}
}

// victimEnv makes the test binary run a cluster until it is killed.
const victimEnv = "SLURMNET_TEST_VICTIM"

func TestKilledTestLeavesNothing(t *testing.T) {
	if os.Getenv(victimEnv) != "" {
		traces := Start(t, Options{Version: "26.05", Nodes: 2}).traces(t)
		fmt.Println("traces", traces.link, strings.Join(traces.namespaces, " "))
		<-t.Context().Done() // never reached: the test is killed before
	}
	victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	victim.Env = append(os.Environ(), victimEnv+"=yes")
	output, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var found []string
	lines := bufio.NewScanner(output)
	for len(found) == 0 && lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 2 && fields[0] == "traces" {
			found = fields[1:]
		}
	}
	killed := now(t)
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // it was killed
	if len(found) == 0 {
		t.Fatal("the victim started no cluster")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for left := (traces{found[0], found[1:]}); left.left(killed) != nil; <-ticker.C {
		if ctx.Err() != nil {
			t.Fatal(left.left(killed))
		}
	}
	Start(t, Options{Version: "26.05", Nodes: 1})
}
