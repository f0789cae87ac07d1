package network

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A delay is made by a relay: the machine's end of the node's veth pair leaves the bridge, a second pair takes its place
// there, and a process carries each frame from one to the other when its time has come. Not every kernel has the netem
// queue that would do this in one command; every kernel has packet sockets.

// relayEnds are the two ends of the second pair: the one in the bridge and the one that the relay holds.
func (w Wire) relayEnds() (inBridge, held string) {
	return fmt.Sprintf("soc-delay-%d", w.number), fmt.Sprintf("soc-relay-%d", w.number)
}

// StartDelay lays the detour through which Relay carries the node's frames.
func (w Wire) StartDelay(ctx context.Context) error {
	inBridge, held := w.relayEnds()
	return runAll(ctx, [][]string{
		{"ip", "link", "add", inBridge, "type", "veth", "peer", "name", held},
		// What leaves these two ends is read from packet sockets, so checksums and segments must be complete by then.
		{"ethtool", "-K", inBridge, "tx", "off", "gso", "off"},
		w.inside("ethtool", "-K", "eth0", "tx", "off", "gso", "off"),
		{"ip", "link", "set", held, "up"},
		{"ip", "link", "set", w.Namespace(), "nomaster"},
		{"ip", "link", "set", inBridge, "master", bridge, "up"},
	})
}

// EndDelay connects the node directly again. A node that is not delayed is left alone.
func (w Wire) EndDelay(ctx context.Context) error {
	inBridge, _ := w.relayEnds()
	if !stillThere(ctx, inBridge) {
		return nil
	}
	return runAll(ctx, [][]string{
		{"ip", "link", "del", inBridge},
		{"ip", "link", "set", w.Namespace(), "master", bridge},
		w.inside("ethtool", "-K", "eth0", "tx", "on", "gso", "on"),
	})
}

// Relay carries the frames of a node that StartDelay has set aside, each after the delay, until the context ends.
func Relay(ctx context.Context, w Wire, delay time.Duration) error {
	_, held := w.relayEnds()
	node, err := openLink(w.Namespace())
	if err != nil {
		return err
	}
	defer node.Close()
	rest, err := openLink(held)
	if err != nil {
		return err
	}
	defer rest.Close()
	ended := make(chan error, 2)
	go func() { ended <- carry(node, rest, delay) }()
	go func() { ended <- carry(rest, node, delay) }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

// carry copies frames in their order, each when its time has come.
func carry(from, to *os.File, delay time.Duration) error {
	type frame struct {
		due     time.Time
		content []byte
	}
	// What does not fit is lost, as in any switch.
	queue := make(chan frame, 1<<14)
	go func() {
		for frame := range queue {
			time.Sleep(time.Until(frame.due))
			// A frame that the link does not take now is lost, too.
			_, _ = to.Write(frame.content)
		}
	}()
	defer close(queue)
	buffer := make([]byte, 1<<16)
	for {
		length, err := from.Read(buffer)
		if err != nil {
			return fmt.Errorf("reading frames: %w", err)
		}
		select {
		case queue <- frame{time.Now().Add(delay), append([]byte(nil), buffer[:length]...)}:
		default:
		}
	}
}

// openLink opens a packet socket that sees what arrives at a link, and sends from it.
func openLink(name string) (*os.File, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("opening link %s: %w", name, err)
	}
	everything := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, int(everything))
	if err != nil {
		return nil, fmt.Errorf("opening a packet socket: %w", err)
	}
	if err := unix.SetsockoptInt(socket, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		unix.Close(socket)
		return nil, fmt.Errorf("opening link %s: %w", name, err)
	}
	if err := unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: everything, Ifindex: link.Index}); err != nil {
		unix.Close(socket)
		return nil, fmt.Errorf("opening link %s: %w", name, err)
	}
	return os.NewFile(uintptr(socket), name), nil
}
