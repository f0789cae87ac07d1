//go:build integration

package webhook_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A service replaces kube-proxy: it forwards each new connection of the API server to the next replica. The Service
// object is an ExternalName that points here.
type service struct {
	listener net.Listener

	mu       sync.Mutex
	replicas []string // addresses
	turn     int
	hanging  bool
	accepted int // connections so far
}

func newService(t *testing.T) *service {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := &service{listener: listener}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go service.connect(caller)
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	return service
}

func (s *service) port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// route forwards new connections to these replicas. Without replicas they are closed immediately.
func (s *service) route(replicas ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas = replicas
}

// hang makes new connections hang without a response.
func (s *service) hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hanging = true
}

// connections returns how often an API server has called a webhook on a new connection. A dead webhook leaves none to
// reuse.
func (s *service) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

func (s *service) next() (address string, hanging bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted++
	if len(s.replicas) == 0 {
		return "", s.hanging
	}
	s.turn++
	return s.replicas[s.turn%len(s.replicas)], s.hanging
}

func (s *service) connect(caller net.Conn) {
	defer caller.Close()
	address, hanging := s.next()
	if hanging {
		_, _ = io.Copy(io.Discard, caller)
		return
	}
	replica, err := net.Dial("tcp", address) //nolint:noctx // it is closed with the caller's connection
	if err != nil {
		return
	}
	defer replica.Close()
	go func() {
		defer replica.Close()
		_, _ = io.Copy(replica, caller)
	}()
	_, _ = io.Copy(caller, replica)
}
