package slurmnet

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/test/machine"
)

// A Machine is a virtual machine on the network of a cluster.
type Machine struct {
	// Name is its host name.
	Name string

	address string
	process *process
	console string
}

// firstMachine is the last octet of the first machine's address.
const firstMachine = 230

// MachineOptions describe a machine.
type MachineOptions struct {
	// Name is its host name.
	Name string
	// Programs are programs of the host that it gets, by their path in the machine.
	Programs map[string]string
	// CPUs are its CPUs as QEMU's option -smp describes them; two cores if empty.
	CPUs string
	// CgroupV1 gives it cgroup v1 instead of v2.
	CgroupV1 bool
}

// StartMachine starts a machine with the image of slurmd. It is stopped when the test ends.
func (c *Cluster) StartMachine(tb testing.TB, opts MachineOptions) *Machine {
	tb.Helper()
	kernel, err := machine.GetKernel(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Logf("%s runs %s", opts.Name, kernel.Version)
	image, err := images.Unpack(tb.Context(), images.Slurm("slurmd", c.opts.Version))
	if err != nil {
		tb.Fatal(err)
	}
	disk, err := machine.Disk(tb.Context(), image, opts.Programs)
	if err != nil {
		tb.Fatal(err)
	}
	m := &Machine{
		Name: opts.Name, address: c.sandbox.address(firstMachine + len(c.machines)),
		console: filepath.Join(tb.TempDir(), opts.Name+".log"),
	}
	tap := fmt.Sprintf("tap%d", len(c.machines))
	c.machines = append(c.machines, m)
	namespace := c.sandbox.init.namespace("net")
	if err := ip([]string{"tuntap add dev " + tap + " mode tap", "link set " + tap + " master switch up"},
		namespace); err != nil {
		tb.Fatal(err)
	}
	command := machine.Command(context.Background(), kernel, machine.Options{
		Name: opts.Name, Disk: disk, Tap: tap, Address: m.address + "/24", CPUs: cmp.Or(opts.CPUs, "2"), Memory: 2048,
		CgroupV1: opts.CgroupV1, Console: m.console,
	})
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := os.Create(m.console + ".qemu")
	if err != nil {
		tb.Fatal(err)
	}
	defer output.Close()
	command.Stdout, command.Stderr = output, output
	if m.process, err = start(command, namespace); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(m.process.kill)
	c.addHost(tb, m)
	ctx, cancel := context.WithTimeout(tb.Context(), readyTimeout)
	defer cancel()
	if err := machine.WaitReady(ctx, m.address); err != nil {
		said, _ := os.ReadFile(m.console)
		complaint, _ := os.ReadFile(output.Name())
		tb.Fatalf("%v\n%s%s", err, complaint, said)
	}
	hosts, err := os.ReadFile(c.Slurmctld.Path("/etc/hosts"))
	if err != nil {
		tb.Fatal(err)
	}
	m.Write(tb, "/etc/hosts", string(hosts))
	return m
}

// addHost makes the name of a machine known to all hosts.
func (c *Cluster) addHost(tb testing.TB, m *Machine) {
	tb.Helper()
	for _, daemon := range c.daemons {
		file, err := os.OpenFile(daemon.Path("/etc/hosts"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			tb.Fatal(err)
		}
		_, err = fmt.Fprintf(file, "%s %s\n", m.address, m.Name)
		if closed := file.Close(); err != nil || closed != nil {
			tb.Fatal(err, closed)
		}
	}
}

// Run runs a shell script as root.
func (m *Machine) Run(ctx context.Context, script string) (string, error) {
	return machine.Run(ctx, m.address, script)
}

// MustRun runs a shell script, and returns its output without surrounding space. It fails the test if the script fails.
func (m *Machine) MustRun(tb testing.TB, script string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), commandTimeout)
	defer cancel()
	output, err := m.Run(ctx, "set -e\n"+script)
	if err != nil {
		tb.Fatalf("%v\non machine %s: %s", err, m.Name, script)
	}
	return strings.TrimSpace(output)
}

// Write writes a file.
func (m *Machine) Write(tb testing.TB, path, content string) {
	tb.Helper()
	m.MustRun(tb, fmt.Sprintf("mkdir -p %s\ncat >%s <<'END OF FILE'\n%s\nEND OF FILE", filepath.Dir(path), path, content))
}
