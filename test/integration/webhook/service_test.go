//go:build integration

package webhook_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A service stands in for kube-proxy: it connects API servers with one of the replicas, each new connection with the next. The
// Service in the API server is an ExternalName that leads here.
type service struct {
	listener net.Listener

	mu       sync.Mutex
	replicas []string // addresses
	turn     int
	silent   bool
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

// lead lets new connections lead to these replicas. Without any they are closed at once.
func (s *service) lead(replicas ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas = replicas
}

// fallSilent lets new connections lead to where nobody ever answers.
func (s *service) fallSilent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = true
}

// connections is how often an API server has called a webhook on a new connection. A dead webhook leaves none to reuse.
func (s *service) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

func (s *service) next() (address string, silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted++
	if len(s.replicas) == 0 {
		return "", s.silent
	}
	s.turn++
	return s.replicas[s.turn%len(s.replicas)], s.silent
}

func (s *service) connect(caller net.Conn) {
	defer caller.Close()
	address, silent := s.next()
	if silent {
		_, _ = io.Copy(io.Discard, caller)
		return
	}
	replica, err := net.Dial("tcp", address) //nolint:noctx // it ends with the caller's connection
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
