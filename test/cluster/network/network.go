// Package network sets up the network of a test cluster on one computer: a bridge on the host, and for each node a
// network namespace with a veth pair to that bridge, with routes to each node's pods. No traffic leaves the computer.
package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slurm-operator/slurm-operator/test/thread"
)

// The address plan. All of it exists only between the bridge and the namespaces.
const (
	// HostAddress is the host's address on the bridge, where the API server listens.
	HostAddress = "10.89.0.1"
	// ServiceCIDR is the range of cluster IPs of Services.
	ServiceCIDR = "10.96.0.0/16"
	// ServiceAddress is the cluster address of the API server, the first of them.
	ServiceAddress = "10.96.0.1"
	// DNSAddress is the cluster address of the DNS Service.
	DNSAddress = "10.96.0.10"
	// PodCIDR is the range of addresses of all pods.
	PodCIDR = "10.244.0.0/16"

	bridge    = "soc0"
	netnsDir  = "/run/netns"
	linkWidth = "/24"
)

// Wire is a node's network connection, identified by the node's number (from 1).
type Wire struct{ number int }

// WireOf returns the connection of the node with a number.
func WireOf(number int) Wire { return Wire{number} }

// Number returns the number of the wire's node.
func (w Wire) Number() int { return w.number }

// Namespace returns the name of the node's network namespace, and of the host end of its veth pair.
func (w Wire) Namespace() string { return fmt.Sprintf("soc-node-%d", w.number) }

// NamespaceFile returns the path of the namespace, for other programs to enter it.
func (w Wire) NamespaceFile() string { return filepath.Join(netnsDir, w.Namespace()) }

// Address returns the node's address.
func (w Wire) Address() string { return fmt.Sprintf("10.89.0.%d", 10+w.number) }

// PodCIDR returns the range of addresses of the node's pods.
func (w Wire) PodCIDR() string { return fmt.Sprintf("10.244.%d.0/24", w.number) }

// Up creates the bridge and the wires of all nodes.
func Up(ctx context.Context, wires []Wire) error {
	commands := [][]string{
		{"ip", "link", "add", bridge, "type", "bridge"},
		{"ip", "address", "add", HostAddress + linkWidth, "dev", bridge},
		{"ip", "link", "set", bridge, "up"},
	}
	for _, wire := range wires {
		commands = append(commands, wire.commands()...)
	}
	for _, wire := range wires {
		for _, other := range wires {
			if other != wire {
				commands = append(commands, wire.inside("ip", "route", "add", other.PodCIDR(), "via", other.Address()))
			}
		}
	}
	return runAll(ctx, commands)
}

func (w Wire) commands() [][]string {
	name := w.Namespace()
	return [][]string{
		{"ip", "netns", "add", name},
		{"ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name},
		{"ip", "link", "set", name, "master", bridge, "up"},
		w.inside("ip", "link", "set", "lo", "up"),
		w.inside("ip", "address", "add", w.Address()+linkWidth, "dev", "eth0"),
		w.inside("ip", "link", "set", "eth0", "up"),
		w.inside("ip", "route", "add", "default", "via", HostAddress),
		w.inside("sysctl", "-qw", "net.ipv4.ip_forward=1"),
		{"ip", "route", "add", w.PodCIDR(), "via", w.Address()},
	}
}

// inside wraps a command to run it in the node's network namespace; unlike ip netns exec, this does not remount /sys.
func (w Wire) inside(command ...string) []string {
	return append([]string{"nsenter", "--net=" + w.NamespaceFile(), "--"}, command...)
}

// Cut disconnects the node from the network, like pulling a cable.
func (w Wire) Cut(ctx context.Context) error {
	return run(ctx, "ip", "link", "set", w.Namespace(), "down")
}

// Heal undoes Cut.
func (w Wire) Heal(ctx context.Context) error {
	return run(ctx, "ip", "link", "set", w.Namespace(), "up")
}

// Down removes every link and namespace that Up created, including those of interrupted clusters.
func Down(ctx context.Context) error {
	left, err := Leftovers(ctx)
	if err != nil {
		return err
	}
	for _, name := range left {
		remove := []string{"ip", "link", "del", name}
		if isNamespace(name) {
			remove = []string{"ip", "netns", "del", name}
		}
		if err := run(ctx, remove...); err != nil && exists(ctx, name) {
			return err
		}
	}
	return unmountEmptyNetnsDir()
}

// unmountEmptyNetnsDir undoes what the first ip netns add on a host did: it made the directory of namespaces a mount
// point. It stays while there is any namespace in it.
func unmountEmptyNetnsDir() error {
	if namespaces, err := os.ReadDir(netnsDir); err != nil || len(namespaces) != 0 {
		return nil //nolint:nilerr // without the directory there is nothing to undo
	}
	if err := unix.Unmount(netnsDir, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmounting %s: %w", netnsDir, err)
	}
	return nil
}

// Leftovers lists the existing links and namespaces of test clusters. Namespaces come first, because a veth pair is
// deleted with its namespace.
func Leftovers(ctx context.Context) ([]string, error) {
	var found []string
	namespaces, err := filepath.Glob(filepath.Join(netnsDir, "soc-*"))
	if err != nil {
		return nil, err
	}
	for _, path := range namespaces {
		found = append(found, filepath.Base(path))
	}
	out, err := exec.CommandContext(ctx, "ip", "-json", "link", "show").Output()
	if err != nil {
		return nil, fmt.Errorf("listing links: %w", err)
	}
	var links []struct {
		Name string `json:"ifname"`
	}
	if err := json.Unmarshal(out, &links); err != nil {
		return nil, fmt.Errorf("listing links: %w", err)
	}
	for _, link := range links {
		if strings.HasPrefix(link.Name, "soc-") || link.Name == bridge {
			found = append(found, link.Name)
		}
	}
	return found, nil
}

func exists(ctx context.Context, name string) bool {
	left, err := Leftovers(ctx)
	return err != nil || slices.Contains(left, name)
}

func isNamespace(name string) bool {
	_, err := os.Stat(filepath.Join(netnsDir, name))
	return err == nil
}

// Dial connects to an address from the node's network namespace.
func (w Wire) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return Dial(ctx, w.NamespaceFile(), network, address)
}

// Dial connects to an address from a network namespace, that of a file such as /proc/1/ns/net.
func Dial(ctx context.Context, namespaceFile, network, address string) (conn net.Conn, err error) {
	thread.Run(func() {
		if err = enter(namespaceFile); err == nil {
			conn, err = new(net.Dialer).DialContext(ctx, network, address)
		}
	})
	return conn, err
}

// enter moves the calling thread into a network namespace.
func enter(namespaceFile string) error {
	file, err := os.Open(namespaceFile)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering the network of %s: %w", namespaceFile, err)
	}
	return nil
}

func runAll(ctx context.Context, commands [][]string) error {
	for _, command := range commands {
		if err := run(ctx, command...); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, command ...string) error {
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
