package node

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/test/cluster/network"
	"github.com/slurm-operator/slurm-operator/test/cluster/pki"
	"github.com/slurm-operator/slurm-operator/test/cluster/process"
	"github.com/slurm-operator/slurm-operator/test/machine"
)

// MachineTaint is the key of the taint of a node that is a machine: pods without a toleration do not run there.
const MachineTaint = "devcluster/machine"

// WritableCgroups is the runtime handler of a machine that mounts the cgroups of containers writable.
const WritableCgroups = "cgroup-writable"

// Machine is a node that is a virtual machine. It has its own kernel, and so cgroup v2, whatever the computer has.
// Everything on it is slow, because its processor is emulated. It has an empty disk each time that it is powered on.
type Machine struct {
	Name string
	Tap  network.Tap
	// Wires are the connections of the other nodes.
	Wires []network.Wire
	// Processes is the cluster's group; the machine's console is logged there.
	Processes process.Group
	// Binaries are the directories with the machine's programs.
	Binaries []string
	// Registry is the URL of the registry that serves every image.
	Registry string
}

const (
	machineCPUs   = "2"
	machineMemory = 3072 // MiB

	// The machine's programs and configuration files.
	programDir = "/usr/local/bin"
	machineDir = "/etc/node"
)

// machineRuntime runs the containers. With runc, on a busy computer, a command in a container took longer than the
// kubelet waits for a probe.
const machineRuntime = "crun"

// machinePackages are the Debian packages of a machine, besides the base system.
var machinePackages = []string{"iproute2", "mount", "nftables", machineRuntime}

// machineModules are what the kernel needs for pod networks and for the rules of kube-proxy.
var machineModules = []string{
	"veth", "nf_conntrack", "nf_conntrack_netlink", "nf_nat", "nf_tables", "nft_chain_nat", "nft_ct", "nft_fib_inet",
	"nft_fib_ipv4", "nft_fib_ipv6", "nft_hash", "nft_limit", "nft_masq", "nft_nat", "nft_numgen", "nft_redir",
	"nft_reject_inet", "nft_reject_ipv4", "nft_reject_ipv6",
}

// writableCgroups is the configuration of a runtime handler for containerd.
const writableCgroups = `[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.` + WritableCgroups + `]
runtime_type = "io.containerd.runc.v2"
cgroup_writable = true

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.` + WritableCgroups + `.options]
BinaryName = "` + machineRuntime + `"
SystemdCgroup = false
`

func (m Machine) config() config {
	return config{
		name: m.Name, address: m.Tap.Address(), podCIDR: m.Tap.PodCIDR(), registry: m.Registry, directory: machineDir,
		certificates: filepath.Join(machineDir, "pki"), plugins: programDir, runtime: machineRuntime,
		containerd: writableCgroups,
		taints:     fmt.Sprintf("[{key: %s, effect: NoSchedule}]", MachineTaint),
	}
}

// Prepare writes the machine's configuration and certificates. It is called once for a machine.
func (m Machine) Prepare(authority *pki.Authority, apiServer string) error {
	if err := issue(authority, apiServer, m.Name, m.Tap.Address()); err != nil {
		return err
	}
	files := m.config().files()
	for _, name := range []string{
		"ca.crt", m.Name + ".crt", m.Name + ".key", m.Name + ".kubeconfig", m.Name + "-proxy.kubeconfig",
	} {
		content, err := os.ReadFile(authority.File(name))
		if err != nil {
			return err
		}
		files[filepath.Join("pki", name)] = string(content)
	}
	return writeFiles(m.dir(), files)
}

// On powers the machine on and starts its daemons. It does nothing if the machine is on.
func (m Machine) On(ctx context.Context) error {
	if m.Running() {
		return nil
	}
	kernel, err := machine.GetKernel(ctx, machineModules...)
	if err != nil {
		return err
	}
	disk, err := m.disk(ctx)
	if err != nil {
		return err
	}
	if err := m.Tap.Up(ctx, m.Wires); err != nil {
		return err
	}
	command := machine.Command(ctx, kernel, machine.Options{
		Name: m.Name, Disk: disk, Tap: m.Tap.Device(), Address: m.Tap.Prefix(), CPUs: machineCPUs, Memory: machineMemory,
		Console: m.Processes.LogFile(m.Name + "-console"),
	})
	if err := m.Processes.Start(process.Spec{Name: m.Name, Path: command.Path, Args: command.Args[1:]}); err != nil {
		return err
	}
	if err := machine.WaitReady(ctx, m.Tap.Address()); err != nil {
		return err
	}
	script, err := m.script()
	if err != nil {
		return err
	}
	_, err = m.Run(ctx, script)
	return err
}

// Off cuts the machine's power. What was on its disk is lost.
func (m Machine) Off(ctx context.Context) error {
	if err := m.Processes.Stop(ctx, m.Name, 0); err != nil {
		return err
	}
	return m.Tap.Down(ctx, m.Wires)
}

// Running reports whether the machine is powered on.
func (m Machine) Running() bool { return m.Processes.Running(m.Name) }

// Run runs a shell script on the machine as root, and returns what it prints.
func (m Machine) Run(ctx context.Context, script string) (string, error) {
	return machine.Run(ctx, m.Tap.Address(), script)
}

func (m Machine) dir() string { return filepath.Join(m.Processes.Dir, "nodes", m.Name) }

// disk returns a disk with the machine's programs.
func (m Machine) disk(ctx context.Context) (string, error) {
	system, err := images.Debian(ctx, machinePackages...)
	if err != nil {
		return "", err
	}
	programs := map[string]string{}
	for _, name := range []string{
		Containerd, "containerd-shim-runc-v2", "ctr", Kubelet, KubeProxy, "host-local", "loopback", "portmap", "ptp",
	} {
		path, err := binaries.Find(m.Binaries, name)
		if err != nil {
			return "", err
		}
		programs[filepath.Join(programDir, name)] = path
	}
	return machine.Disk(ctx, system, programs)
}

// script returns a shell script that writes the configuration files on the machine, sets up its network and its mounts,
// and starts the daemons.
func (m Machine) script() (string, error) {
	var script strings.Builder
	script.WriteString("set -e\n")
	files, err := readFiles(m.dir())
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(machineDir, name)
		fmt.Fprintf(&script, "mkdir -p %s\ncat >%s <<'END OF FILE'\n%s\nEND OF FILE\n", filepath.Dir(path), path, files[name])
	}
	script.WriteString(m.Tap.Script(m.Wires))
	fmt.Fprintf(&script, `mount --make-rshared /
mkdir -p %s
cp %s/cni/* %s/
echo 127.0.0.1 localhost >/etc/hosts
echo nameserver %s >/etc/resolv.conf
tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
export PATH=%s:$PATH
`, networkDir, machineDir, networkDir, network.DNSAddress, programDir)
	for _, daemon := range m.config().daemons() {
		fmt.Fprintf(&script, "setsid sh -c 'while :; do %s %s; sleep 1; done' >/var/log/%s.log 2>&1 </dev/null &\n",
			daemon.Name, strings.Join(daemon.Args, " "), daemon.Name)
	}
	return script.String(), nil
}

// readFiles returns the files in a directory and below it, by their names.
func readFiles(dir string) (map[string]string, error) {
	files := map[string]string{}
	return files, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[name] = string(content)
		return err
	})
}
