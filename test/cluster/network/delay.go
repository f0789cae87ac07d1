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

// A delay is implemented by a relay: the host end of the node's veth pair is taken out of the bridge, a second veth
// pair takes its place, and a process copies each frame from one to the other after the delay. Not every kernel has the
// netem qdisc, which would do this in one command; every kernel has packet sockets.

// relayEnds returns the two ends of the second pair: the one in the bridge and the one that the relay uses.
func (w Wire) relayEnds() (inBridge, held string) {
	return fmt.Sprintf("soc-delay-%d", w.number), fmt.Sprintf("soc-relay-%d", w.number)
}

// StartDelay sets up the links through which Relay copies the node's frames.
func (w Wire) StartDelay(ctx context.Context) error {
	inBridge, held := w.relayEnds()
	return runAll(ctx, [][]string{
		{"ip", "link", "add", inBridge, "type", "veth", "peer", "name", held},
		// Packet sockets read what these two ends send, so checksum and segmentation offload must be off.
		{"ethtool", "-K", inBridge, "tx", "off", "gso", "off"},
		w.inside("ethtool", "-K", "eth0", "tx", "off", "gso", "off"),
		{"ip", "link", "set", held, "up"},
		{"ip", "link", "set", w.Namespace(), "nomaster"},
		{"ip", "link", "set", inBridge, "master", bridge, "up"},
	})
}

// EndDelay connects the node directly again. It does nothing if the node is not delayed.
func (w Wire) EndDelay(ctx context.Context) error {
	inBridge, _ := w.relayEnds()
	if !exists(ctx, inBridge) {
		return nil
	}
	return runAll(ctx, [][]string{
		{"ip", "link", "del", inBridge},
		{"ip", "link", "set", w.Namespace(), "master", bridge},
		w.inside("ethtool", "-K", "eth0", "tx", "on", "gso", "on"),
	})
}

// Relay copies the frames of a node after StartDelay, each after the delay, until the context is canceled.
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
	go func() { ended <- copyDelayed(node, rest, delay) }()
	go func() { ended <- copyDelayed(rest, node, delay) }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

// copyDelayed copies frames in order, each after the delay.
func copyDelayed(from, to *os.File, delay time.Duration) error {
	type frame struct {
		due     time.Time
		content []byte
	}
	// Frames that do not fit are dropped, as in any switch.
	queue := make(chan frame, 1<<14)
	go func() {
		for frame := range queue {
			time.Sleep(time.Until(frame.due))
			// A frame that the link does not accept now is dropped, too.
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

// openLink opens a packet socket that receives the frames arriving at a link, and sends frames from it.
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
