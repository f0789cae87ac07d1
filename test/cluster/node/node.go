// Package node runs several nodes on one computer: a node is an init process in its own mount, PID, UTS and network
// namespaces, with containerd, a kubelet and kube-proxy as its children. Killing that process is like cutting the
// node's power: the kernel kills everything else on the node with it. What a real node keeps on its disk over a power
// cut, this node keeps in its directory.
//
// Such nodes have the computer's kernel and its version of cgroups. A Machine is a node with its own.
package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
	"github.com/slurm-operator/slurm-operator/test/cluster/network"
	"github.com/slurm-operator/slurm-operator/test/cluster/pki"
	"github.com/slurm-operator/slurm-operator/test/cluster/process"
)

// The daemons of a node.
const (
	Containerd = "containerd"
	Kubelet    = "kubelet"
	KubeProxy  = "kube-proxy"
)

// Node is one node of a test cluster.
type Node struct {
	Name string
	Wire network.Wire
	// Processes is the cluster's group; the node's init and its daemons log there.
	Processes process.Group
	// Binaries are the directories with the node's programs.
	Binaries []string
	// Registry is the URL of the registry that serves every image.
	Registry string
	// InitCommand is the command that runs Init; the path of a configuration file is appended.
	InitCommand []string
}

// Prepare writes the node's configuration and certificates. It is called once for a node.
func (n Node) Prepare(authority *pki.Authority, apiServer string) error {
	if err := issue(authority, apiServer, n.Name, n.Wire.Address()); err != nil {
		return err
	}
	plugin, err := binaries.Find(n.Binaries, "ptp")
	if err != nil {
		return err
	}
	files := config{
		name: n.Name, address: n.Wire.Address(), podCIDR: n.Wire.PodCIDR(), registry: n.Registry, directory: n.path(""),
		certificates: authority.File(""), plugins: filepath.Dir(plugin), cgroup: n.cgroup(), taints: "[]", runtime: "runc",
		containerd: `[plugins."io.containerd.cri.v1.runtime"]
# The host may forbid lowering the OOM score of a process.
restrict_oom_score_adj = true
`,
	}
	if err := writeFiles(n.path(""), files.files()); err != nil {
		return err
	}
	config, err := n.initConfig(files)
	if err != nil {
		return err
	}
	for source := range config.Mounts {
		if err := os.MkdirAll(source, 0o755); err != nil {
			return err
		}
	}
	content, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(n.path("init.json"), content, 0o644)
}

// issue issues the certificates of a node.
func issue(authority *pki.Authority, apiServer, name, address string) error {
	if err := authority.IssueKubeconfig(name, apiServer, pki.Subject{
		CommonName: "system:node:" + name, Organization: "system:nodes", Hosts: []string{name, address},
	}); err != nil {
		return err
	}
	return authority.IssueKubeconfig(name+"-proxy", apiServer, pki.Subject{CommonName: "system:kube-proxy"})
}

// writeFiles writes files, by their names, into a directory.
func writeFiles(dir string, files map[string]string) error {
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// On powers the node on.
func (n Node) On() error {
	if err := makeCgroups(n.cgroup()); err != nil {
		return fmt.Errorf("creating the cgroups of %s: %w", n.Name, err)
	}
	arguments := append([]string{"--net=" + n.Wire.NamespaceFile(), "--"}, n.InitCommand...)
	return n.Processes.Start(process.Spec{
		Name:       n.Name,
		Path:       "nsenter",
		Args:       append(arguments, n.path("init.json")),
		Namespaces: unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWPID,
	})
}

// Off cuts the node's power: no process on it can shut down gracefully.
func (n Node) Off(ctx context.Context) error {
	if err := n.Processes.Stop(ctx, n.Name, 0); err != nil {
		return err
	}
	return removeCgroups(ctx, n.cgroup())
}

// Running reports whether the node is powered on.
func (n Node) Running() bool { return n.Processes.Running(n.Name) }

// Signal sends a signal to a daemon of the node, to pause it, continue it or make its init restart it.
func (n Node) Signal(daemon string, signal syscall.Signal) error {
	pid, err := n.daemonPid(daemon)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, signal)
}

// daemonPid finds a daemon among the children of the node's init.
func (n Node) daemonPid(daemon string) (int, error) {
	parent, err := n.Processes.Pid(n.Name)
	if err != nil {
		return 0, err
	}
	// Each thread of the init has its own list of children.
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		return 0, fmt.Errorf("reading the processes of %s: %w", n.Name, err)
	}
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has exited
		}
		for child := range strings.FieldsSeq(string(children)) {
			command, err := os.ReadFile(filepath.Join("/proc", child, "comm"))
			if err == nil && strings.TrimSpace(string(command)) == daemon {
				return strconv.Atoi(child)
			}
		}
	}
	return 0, fmt.Errorf("no %s runs on %s; its daemons are %s, %s and %s", daemon, n.Name, Containerd, Kubelet,
		KubeProxy)
}

// PodLogs returns the directory with the logs of the node's pods.
func (n Node) PodLogs() string { return n.path("disk/log-pods") }

func (n Node) path(name string) string { return filepath.Join(n.Processes.Dir, "nodes", n.Name, name) }

func (n Node) cgroup() string { return cgroupPrefix + n.Name }

func (n Node) initConfig(files config) (initConfig, error) {
	config := initConfig{
		Hostname: n.Name,
		Mounts: map[string]string{
			n.path("disk/kubelet"):        "/var/lib/kubelet",
			n.path("disk/containerd"):     "/var/lib/containerd",
			n.path("disk/cni"):            "/var/lib/cni",
			n.PodLogs():                   "/var/log/pods",
			n.path("disk/log-containers"): "/var/log/containers",
			n.path("disk/local-path"):     LocalPathDir,
			n.path("cni"):                 networkDir,
		},
		Tmpfs:   []string{"/run/containerd", "/run/netns"},
		Daemons: files.daemons(),
	}
	for i := range config.Daemons {
		daemon := &config.Daemons[i]
		path, err := binaries.Find(n.Binaries, daemon.Name)
		if err != nil {
			return initConfig{}, err
		}
		daemon.Path = path
		daemon.Log = n.Processes.LogFile(n.Name + "-" + daemon.Name)
		// containerd finds its shim in its own directory.
		daemon.Env = []string{"PATH=" + filepath.Dir(path) + ":" + os.Getenv("PATH")}
	}
	return config, nil
}

// Leftovers lists what nodes have left on the host: their cgroups, and mounts that escaped from their namespaces.
func Leftovers() ([]string, error) {
	left, err := cgroupsBelow(cgroupPrefix + "*")
	if err != nil {
		return nil, err
	}
	table, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) > 1 &&
			slices.ContainsFunc(mountTargets, func(ours string) bool { return strings.HasPrefix(fields[1], ours) }) {
			left = append(left, "mount at "+fields[1])
		}
	}
	return left, nil
}

// RemoveLeftovers removes the cgroups and empty mount points of all nodes; all nodes must be off.
func RemoveLeftovers(ctx context.Context) error {
	if err := removeCgroups(ctx, cgroupPrefix+"*"); err != nil {
		return err
	}
	for _, target := range mountTargets {
		// A directory that is not empty is not ours.
		_ = os.Remove(target)
	}
	return nil
}

// removeCgroups removes cgroups. It retries, because the kernel kills the processes of a dead namespace one by one.
func removeCgroups(ctx context.Context, pattern string) error {
	var left []string
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 5*time.Minute, true,
		func(context.Context) (bool, error) {
			var err error
			if left, err = cgroupsBelow(pattern); err != nil {
				return false, err
			}
			for _, dir := range left {
				_ = os.Remove(dir)
			}
			return len(left) == 0, nil
		})
	if err != nil {
		return fmt.Errorf("removing cgroups %s: %w", strings.Join(left, ", "), err)
	}
	return nil
}
