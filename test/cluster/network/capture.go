package network

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/slurm-operator/slurm-operator/test/thread"
)

// A Capture records the TCP segments from and to a port in a network namespace.
type Capture struct {
	socket *os.File
	port   uint16
	done   chan error

	mu       sync.Mutex
	segments [][]byte
}

// NewCapture records until Stop. The namespace is that of a file, such as /proc/1/ns/net.
func NewCapture(namespaceFile string, port uint16) (*Capture, error) {
	capture := &Capture{port: port, done: make(chan error, 1)}
	var err error
	thread.Run(func() {
		if err = enter(namespaceFile); err == nil {
			capture.socket, err = openNamespace()
		}
	})
	if err != nil {
		return nil, fmt.Errorf("capturing packets: %w", err)
	}
	go func() { capture.done <- capture.record() }()
	return capture, nil
}

// openNamespace opens a packet socket that receives all packets of the calling thread's network namespace, without
// their link-layer headers.
func openNamespace() (*os.File, error) {
	everything := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, int(everything))
	if err != nil {
		return nil, err
	}
	const buffered = 64 << 20
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffered); err != nil {
		unix.Close(socket)
		return nil, err
	}
	return os.NewFile(uintptr(socket), "capture"), nil
}

func (c *Capture) record() error {
	buffer := make([]byte, 1<<17)
	for {
		length, err := c.socket.Read(buffer)
		if errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading packets: %w", err)
		}
		if source, destination, found := tcpPorts(buffer[:length]); found && (source == c.port || destination == c.port) {
			c.mu.Lock()
			c.segments = append(c.segments, bytes.Clone(buffer[:length]))
			c.mu.Unlock()
		}
	}
}

// tcpPorts returns the ports of an IP packet with a TCP segment.
func tcpPorts(packet []byte) (source, destination uint16, found bool) {
	const ipv6Header = 40
	if len(packet) < ipv6Header {
		return 0, 0, false
	}
	header, protocol := ipv6Header, packet[6]
	if packet[0]>>4 == 4 {
		header, protocol = int(packet[0]&0xf)*4, packet[9]
	}
	if protocol != unix.IPPROTO_TCP || len(packet) < header+4 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint16(packet[header:]), binary.BigEndian.Uint16(packet[header+2:]), true
}

// Stop ends the recording and returns the segments, in order.
func (c *Capture) Stop() ([][]byte, error) {
	err := errors.Join(c.socket.Close(), <-c.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.segments, err
}
