// Package ports finds free ports for programs that take a listen address.
package ports

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
)

// The range is below the kernel's ephemeral ports, which any outgoing connection may take before the program listens.
// Test processes that run in parallel start at different ports.
const (
	first, last = 20000, 29999
	stride      = 100
)

var next atomic.Int64

func init() { next.Store(int64(os.Getpid() * stride)) }

// Free returns a port on which no process listens, and which it has not returned before.
func Free(t *testing.T) string {
	t.Helper()
	const count = last - first + 1
	var err error
	for range count {
		port := strconv.FormatInt(first+next.Add(1)%count, 10)
		var listener net.Listener
		if listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", ":"+port); err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatalf("no port from %d to %d is free: %v", first, last, err)
	return ""
}
