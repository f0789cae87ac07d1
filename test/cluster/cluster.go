// Package cluster starts a real Kubernetes on one computer for tests: a control plane of plain processes, and nodes
// that are sets of Linux namespaces, each with its own kubelet and containerd. It needs root, but no container engine
// and no registry. One more node is a virtual machine with cgroup v2, which tests add when they need it.
//
// All its files are in one directory: logs, certificates, the nodes' disks. All its processes are marked with the name
// of that directory, so that a cluster that was interrupted at any point can be cleaned up.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
	"github.com/slurm-operator/slurm-operator/hack/cache"
	"github.com/slurm-operator/slurm-operator/test/cluster/addons"
	"github.com/slurm-operator/slurm-operator/test/cluster/controlplane"
	"github.com/slurm-operator/slurm-operator/test/cluster/network"
	"github.com/slurm-operator/slurm-operator/test/cluster/node"
	"github.com/slurm-operator/slurm-operator/test/cluster/process"
)

// Registry is the daemon that serves images to the nodes.
const Registry = "registry"

const registryAddress = network.HostAddress + ":5000"

// Cluster is the test cluster of this computer.
type Cluster struct {
	Plane controlplane.Plane
	Nodes []node.Node
	// Machine is off until StartMachine.
	Machine node.Machine
	state   state
}

// state is what is saved to find a running cluster again.
type state struct {
	Nodes    int
	Binaries []string
	// Program is the copy of this program that runs the cluster's own daemons.
	Program string
}

// Dir returns the directory with all files of the cluster.
func Dir() (string, error) {
	root, err := cache.Dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "cluster"), nil
}

// Open returns the cluster that runs on this computer.
func Open() (*Cluster, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(dir, "cluster.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("no cluster is running on this computer: start one with make cluster-up")
	}
	if err != nil {
		return nil, err
	}
	var found state
	if err := json.Unmarshal(content, &found); err != nil {
		return nil, fmt.Errorf("reading the cluster's state: %w", err)
	}
	return found.cluster(dir), nil
}

// Options describe a cluster.
type Options struct {
	Nodes int
	// Program is the path of the devcluster program, which is, among others, the init of every node.
	Program string
}

// Up starts a cluster and returns when every node is ready and DNS answers. A running cluster with the same options is
// kept; any other, and leftovers of any other, are removed first.
func Up(ctx context.Context, log io.Writer, options Options) (*Cluster, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("a test cluster needs root: it creates namespaces, mounts and cgroups")
	}
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	dirs, err := binaries.BuildAll(ctx, log, binaries.ControlPlane, binaries.Controllers, binaries.Node,
		binaries.Addons, binaries.Containerd, binaries.CNI)
	if err != nil {
		return nil, err
	}
	if err := addImages(ctx, dirs); err != nil {
		return nil, err
	}
	wanted := state{Nodes: options.Nodes, Binaries: dirs, Program: filepath.Join(dir, "devcluster")}
	if found, err := Open(); err == nil && found.state.equal(wanted) && found.waitReady(ctx, log) == nil {
		fmt.Fprintln(log, "the cluster is already running")
		return found, nil
	}
	if err := Down(ctx); err != nil {
		return nil, fmt.Errorf("removing leftovers: %w", err)
	}
	for _, old := range []string{"logs", "nodes"} {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			return nil, err
		}
	}
	made := wanted.cluster(dir)
	if err := made.save(options.Program); err != nil {
		return nil, err
	}
	if err := made.start(ctx, log); err != nil {
		return nil, err
	}
	return made, made.waitReady(ctx, log)
}

func (c *Cluster) start(ctx context.Context, log io.Writer) error {
	if err := raiseLimits(); err != nil {
		return err
	}
	var wires []network.Wire
	for _, node := range c.Nodes {
		wires = append(wires, node.Wire)
	}
	if err := network.Up(ctx, wires); err != nil {
		return err
	}
	if err := c.startRegistry(); err != nil {
		return err
	}
	started := time.Now()
	authority, err := c.Plane.Start(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "control plane ready after %.1f s\n", time.Since(started).Seconds())
	for _, node := range c.Nodes {
		if err := node.Prepare(authority, c.Plane.Server()); err != nil {
			return fmt.Errorf("preparing %s: %w", node.Name, err)
		}
		if err := node.On(); err != nil {
			return err
		}
	}
	if err := c.Machine.Prepare(authority, c.Plane.Server()); err != nil {
		return fmt.Errorf("preparing %s: %w", c.Machine.Name, err)
	}
	return addons.Apply(ctx, c.kubectl(), c.Plane.Kubeconfig(), addons.Settings{
		DNSAddress:      network.DNSAddress,
		LocalPathDir:    node.LocalPathDir,
		SharedDir:       filepath.Join(c.Plane.Processes.Dir, "nodes", "shared"),
		WritableCgroups: node.WritableCgroups,
	})
}

// Down stops the cluster, in whatever state it is, and removes everything except its logs.
func Down(ctx context.Context) error {
	dir, err := Dir()
	if err != nil {
		return err
	}
	if err := (process.Group{Dir: dir}).KillAll(ctx); err != nil {
		return err
	}
	if err := network.Down(ctx); err != nil {
		return err
	}
	if err := node.RemoveLeftovers(ctx); err != nil {
		return err
	}
	for _, name := range []string{"cluster.json", "etcd", "pki", "nodes", "devcluster"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// Leftovers lists every process, link, namespace, cgroup and mount of a test cluster on this computer.
func Leftovers(ctx context.Context) ([]string, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	pids, err := process.Group{Dir: dir}.Marked()
	if err != nil {
		return nil, err
	}
	var left []string
	for _, pid := range pids {
		left = append(left, fmt.Sprintf("process %d", pid))
	}
	links, err := network.Leftovers(ctx)
	if err != nil {
		return nil, err
	}
	fromNodes, err := node.Leftovers()
	return append(append(left, links...), fromNodes...), err
}

// Node returns a node by name.
func (c *Cluster) Node(name string) (node.Node, error) {
	for _, node := range c.Nodes {
		if node.Name == name {
			return node, nil
		}
	}
	return node.Node{}, fmt.Errorf("no node %q; the nodes are node-1 to node-%d", name, len(c.Nodes))
}

func (c *Cluster) startRegistry() error {
	return c.Plane.Processes.Start(process.Spec{
		Name: Registry, Path: c.state.Program, Args: []string{"registry", registryAddress},
	})
}

func (c *Cluster) kubectl() string {
	path, err := binaries.Find(c.state.Binaries, "kubectl")
	if err != nil {
		return "kubectl"
	}
	return path
}

// save writes the state and a copy of the devcluster program, because the original may be rebuilt while the cluster
// runs.
func (c *Cluster) save(program string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Plane.Processes.Dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(c.state.Program, content, 0o755); err != nil {
		return err
	}
	if content, err = json.Marshal(c.state); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Plane.Processes.Dir, "cluster.json"), content, 0o644)
}

func (s state) equal(other state) bool { return fmt.Sprint(s) == fmt.Sprint(other) }

func (s state) cluster(dir string) *Cluster {
	group := process.Group{Dir: dir}
	made := &Cluster{
		state: s,
		Plane: controlplane.Plane{
			Processes:      group,
			Binaries:       s.Binaries,
			Address:        network.HostAddress,
			ServiceCIDR:    network.ServiceCIDR,
			ServiceAddress: network.ServiceAddress,
			PodCIDR:        network.PodCIDR,
		},
		Machine: node.Machine{
			Name:      machineName,
			Tap:       network.TapOf(1),
			Processes: group,
			Binaries:  s.Binaries,
			Registry:  "http://" + registryAddress,
		},
	}
	for number := 1; number <= s.Nodes; number++ {
		made.Machine.Wires = append(made.Machine.Wires, network.WireOf(number))
		made.Nodes = append(made.Nodes, node.Node{
			Name:        fmt.Sprintf("node-%d", number),
			Wire:        network.WireOf(number),
			Processes:   group,
			Binaries:    s.Binaries,
			Registry:    "http://" + registryAddress,
			InitCommand: []string{s.Program, "node-init"},
		})
	}
	return made
}

// raiseLimits raises a kernel limit that a few kubelets reach.
func raiseLimits() error {
	const file = "/proc/sys/fs/inotify/max_user_instances"
	if err := os.WriteFile(file, []byte("8192"), 0o644); err != nil {
		return fmt.Errorf("raising the number of inotify instances: %w", err)
	}
	return nil
}
