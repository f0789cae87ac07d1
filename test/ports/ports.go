// Package ports finds ports for programs that are told where to listen.
package ports

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

// Ports below those that the kernel gives to whoever asks for any, such as every connection that is opened: between the search for one of
// these and the start of the program it may go to somebody else. Processes that test side by side begin at different ones.
const (
	first, last = 20000, 29999
	stride      = 100
)

var next atomic.Int64

func init() { next.Store(int64(os.Getpid() * stride)) }

// Free is a port that nobody listens on, and that this process has not been given lately.
func Free(ctx context.Context) (string, error) {
	const count = last - first + 1
	var err error
	for range count {
		port := strconv.FormatInt(first+next.Add(1)%count, 10)
		var listener net.Listener
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", ":"+port); err == nil {
			return port, listener.Close()
		}
	}
	return "", fmt.Errorf("no port from %d to %d is free: %w", first, last, err)
}
