package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/slurm-operator/slurm-operator/test/cluster/controlplane"
	"github.com/slurm-operator/slurm-operator/test/cluster/network"
	"github.com/slurm-operator/slurm-operator/test/cluster/node"
	"github.com/slurm-operator/slurm-operator/test/cluster/process"
)

// A daemon is named as in the logs: one of the control plane by its own name, one of a node as node-1/kubelet.

// Pause freezes a daemon: it keeps its connections and answers nothing.
func (c *Cluster) Pause(daemon string) error { return c.signal(daemon, syscall.SIGSTOP) }

// Continue undoes Pause.
func (c *Cluster) Continue(daemon string) error { return c.signal(daemon, syscall.SIGCONT) }

// Restart restarts a daemon. After a restart of the API server or etcd it waits until the API server is ready.
func (c *Cluster) Restart(ctx context.Context, daemon string) error {
	if strings.Contains(daemon, "/") {
		// The node's init restarts it.
		return c.signal(daemon, syscall.SIGKILL)
	}
	if err := c.Plane.StopDaemon(ctx, daemon); err != nil {
		return err
	}
	if daemon == Registry {
		return c.startRegistry()
	}
	if err := c.Plane.StartDaemon(daemon); err != nil {
		return err
	}
	if daemon == controlplane.APIServer || daemon == controlplane.Etcd {
		return c.Plane.WaitReady(ctx)
	}
	return nil
}

func (c *Cluster) signal(daemon string, signal syscall.Signal) error {
	name, part, onNode := strings.Cut(daemon, "/")
	if !onNode {
		return c.Plane.Processes.Signal(name, signal)
	}
	node, err := c.Node(name)
	if err != nil {
		return err
	}
	return node.Signal(part, signal)
}

// Kill kills all processes of a pod with SIGKILL: none of them can clean up.
func (c *Cluster) Kill(podUID string) error {
	processes, err := podProcesses(podUID)
	if err != nil {
		return err
	}
	for _, pid := range processes {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing process %d of pod %s: %w", pid, podUID, err)
		}
	}
	return nil
}

// Capture records the TCP segments from and to a port of a pod.
func (c *Cluster) Capture(podUID string, port uint16) (*network.Capture, error) {
	processes, err := podProcesses(podUID)
	if err != nil {
		return nil, err
	}
	return network.NewCapture(fmt.Sprintf("/proc/%d/ns/net", processes[0]), port)
}

// Dial connects to an address from a pod's network.
func (c *Cluster) Dial(ctx context.Context, podUID, transport, address string) (net.Conn, error) {
	processes, err := podProcesses(podUID)
	if err != nil {
		return nil, err
	}
	return network.Dial(ctx, fmt.Sprintf("/proc/%d/ns/net", processes[0]), transport, address)
}

// podProcesses returns the processes of a pod's containers. There is at least one.
func podProcesses(podUID string) ([]int, error) {
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, fmt.Errorf("reading the processes: %w", err)
	}
	var processes []int
	for _, path := range groups {
		process := filepath.Dir(path)
		group, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(group), "/pod"+podUID+"/") {
			continue // it has exited, or belongs to another pod
		}
		// The sandbox stays: it belongs to the kubelet, not to the pod.
		if command, err := os.ReadFile(filepath.Join(process, "comm")); err != nil ||
			strings.TrimSpace(string(command)) == "pause" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(process))
		if err != nil {
			return nil, err
		}
		processes = append(processes, pid)
	}
	if len(processes) == 0 {
		return nil, fmt.Errorf("pod %s has no running process", podUID)
	}
	return processes, nil
}

// Delay delays every frame that a node sends or receives; zero removes the delay.
func (c *Cluster) Delay(ctx context.Context, node node.Node, delay time.Duration) error {
	relay := node.Name + "-relay"
	if err := c.Plane.Processes.Stop(ctx, relay, time.Second); err != nil {
		return err
	}
	if err := node.Wire.EndDelay(ctx); err != nil || delay == 0 {
		return err
	}
	if err := node.Wire.StartDelay(ctx); err != nil {
		return err
	}
	return c.Plane.Processes.Start(process.Spec{
		Name: relay, Path: c.state.Program, Args: []string{"relay", strconv.Itoa(node.Wire.Number()), delay.String()},
	})
}

// Divert redirects all connections from pods to a Service with a single endpoint to another address.
func (c *Cluster) Divert(ctx context.Context, service, behind, to netip.AddrPort) error {
	for _, node := range c.Nodes {
		if err := node.Wire.Divert(ctx, service, behind, to); err != nil {
			return err
		}
	}
	return nil
}

// EndDiversion undoes Divert.
func (c *Cluster) EndDiversion(ctx context.Context) error {
	for _, node := range c.Nodes {
		if err := node.Wire.EndDiversion(ctx); err != nil {
			return err
		}
	}
	return nil
}
