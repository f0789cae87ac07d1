package slurmnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A sandbox holds the mounts and the network of a whole cluster, in namespaces that exist only as long as a process
// that exits with the test: nothing has to be unmounted or removed.
//
// Inside, /run is a new tmpfs with the network namespaces of the hosts in /run/netns and their root filesystems in
// /run/hosts. The hosts are connected to a bridge, and another link connects the bridge to the test.
type sandbox struct {
	index int          // of the subnet and the link
	ipv6  bool         // whether the subnet is one of IPv6
	claim net.Listener // reserves the index
	init  *process
}

// claimSandbox reserves the first free index. The reservation is a socket that the kernel closes with its process, so a
// crashed run blocks nothing.
func claimSandbox(ctx context.Context) (*sandbox, error) {
	var config net.ListenConfig
	for index := range 512 {
		claim, err := config.Listen(ctx, "unix", fmt.Sprintf("@slurmnet-%d", index))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		return &sandbox{index: index, claim: claim}, err
	}
	return nil, errors.New("all 512 subnets are taken")
}

// address returns the n-th address of the sandbox's subnet, which is in the range reserved for network tests (RFC
// 2544) or a unique local one (RFC 4193), so that it does not conflict with others.
func (s *sandbox) address(n int) string {
	if s.ipv6 {
		return fmt.Sprintf("fd53:6c75:726d:%x::%x", s.index, n)
	}
	return fmt.Sprintf("198.%d.%d.%d", 18+s.index/256, s.index%256, n)
}

// onLink returns an address of the subnet as an argument of ip address. Addresses of IPv6 are usable at once, without a
// search for duplicates.
func (s *sandbox) onLink(address string) string {
	if s.ipv6 {
		return address + "/64 nodad"
	}
	return address + "/24"
}

// link returns the name of the link from the test to the sandbox.
func (s *sandbox) link() string { return fmt.Sprintf("slurmnet%d", s.index) }

// path returns the path of a file of the sandbox, as seen from outside.
func (s *sandbox) path(elements ...string) string {
	return filepath.Join(append([]string{"/proc", strconv.Itoa(s.init.pid()), "root"}, elements...)...)
}

// outside is the last octet of the test's own address in the subnet.
const outside = 254

// open creates the namespaces, runs the setup script in them, and connects them to the test's network.
func (s *sandbox) open(setup string) error {
	const prologue = `
mount --make-rprivate /
mount -t proc none /proc
mount -t tmpfs -o mode=0755 tmpfs /run
ip link set lo up
ip link add switch type bridge
ip link set switch up
`
	const epilogue = `
echo done
exec sleep infinity
`
	command := exec.CommandContext(context.Background(), "sh", "-euc", prologue+setup+epilogue)
	command.SysProcAttr = first(syscall.CLONE_NEWNET)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if s.init, err = start(command); err != nil {
		return fmt.Errorf("creating namespaces: %w", err)
	}
	if line, err := io.ReadAll(io.LimitReader(output, int64(len("done")))); err != nil || string(line) != "done" {
		s.init.kill()
		return fmt.Errorf("setting up namespaces: %w: %s", s.init.err, complaints.String())
	}
	return s.connect()
}

// connect links the test's own network to the sandbox's bridge.
func (s *sandbox) connect() error {
	if err := s.removeLink(); err != nil {
		return err
	}
	err := ip([]string{
		fmt.Sprintf("link add %s type veth peer name outside netns %d", s.link(), s.init.pid()),
		fmt.Sprintf("address add %s dev %s", s.onLink(s.address(outside)), s.link()),
		fmt.Sprintf("link set %s up", s.link()),
	})
	if err != nil {
		return err
	}
	return ip([]string{"link set outside master switch up"}, s.init.namespace("net"))
}

// removeLink removes the link with its other end. A killed run may have left one.
func (s *sandbox) removeLink() error {
	if _, err := net.InterfaceByName(s.link()); err != nil {
		return nil //nolint:nilerr // the link does not exist
	}
	return ip([]string{"link delete " + s.link()})
}

// close kills everything in the sandbox and waits until it is gone.
func (s *sandbox) close() error {
	err := s.removeLink()
	if s.init != nil {
		s.init.kill()
	}
	return errors.Join(err, s.claim.Close())
}

// ip runs ip commands in the given namespaces.
func ip(commands []string, namespaces ...string) error {
	batch := exec.CommandContext(context.Background(), "ip", "-batch", "-")
	batch.Stdin = strings.NewReader(strings.Join(commands, "\n"))
	var output bytes.Buffer
	batch.Stdout, batch.Stderr = &output, &output
	if err := run(batch, namespaces...); err != nil {
		return fmt.Errorf("ip: %w: %s", err, output.String())
	}
	return nil
}
