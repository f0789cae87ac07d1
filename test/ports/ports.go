// Package ports finds ports for programs that are told where to listen.
package ports

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
)

// These are below the ports that the kernel gives to whoever asks for any, as every connection does that is opened: one of those may go to
// somebody else before the program listens. Processes that test side by side begin at different ones.
const (
	first, last = 20000, 29999
	stride      = 100
)

var next atomic.Int64

func init() { next.Store(int64(os.Getpid() * stride)) }

// Free is a port that nobody listens on, and that this process was not given before.
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
