package slurmtest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Fault replaces answers.
type Fault struct {
	// Path is a prefix of the path below the API version, such as "nodes"; empty matches all.
	Path string
	// Times is how often the fault occurs; 0 means always, until ClearFaults.
	Times int
	// Respond answers instead of the server. It must return when the client disconnects.
	Respond func(s *Server, w http.ResponseWriter, r *http.Request)
}

// Inject adds a fault. Of several that match, the oldest occurs.
func (s *Server) Inject(fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault)
}

// ClearFaults removes all faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// takeFault returns the fault for a request, if any.
func (s *Server) takeFault(path string) *Fault {
	for i, fault := range s.faults {
		if !strings.HasPrefix(path, fault.Path) {
			continue
		}
		if fault.Times == 1 {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
		} else if fault.Times > 1 {
			fault.Times--
		}
		return fault
	}
	return nil
}

// A Responder answers a request in place of the server.
type Responder = func(*Server, http.ResponseWriter, *http.Request)

// Answer answers with a status and a body.
func Answer(status int, body string) Responder {
	return func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// Truncated closes the connection in the middle of a list, before the announced length is reached.
func Truncated(body string) Responder {
	return func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(2*len(body)))
		fmt.Fprint(w, body)
		_ = http.NewResponseController(w).Flush() // the client may be gone
		panic(http.ErrAbortHandler)
	}
}

// Hang sends nothing until the client disconnects.
func Hang(s *Server, _ http.ResponseWriter, r *http.Request) { s.wait(r) }

// Drip sends a byte now and then, endlessly, so that only a deadline for the whole answer helps.
func Drip(s *Server, w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, `{"nodes":[`)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-ticker.C:
			fmt.Fprint(w, " ")
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
	}
}

// Endless sends valid nodes endlessly, as fast as it can.
func Endless(_ *Server, w http.ResponseWriter, _ *http.Request) {
	element := `{"name":"n","state":["IDLE","DRAIN"],"alloc_cpus":0,"alloc_memory":0},`
	block := strings.Repeat(element, 1000)
	fmt.Fprint(w, `{"nodes":[`)
	for {
		if _, err := fmt.Fprint(w, block); err != nil {
			return
		}
	}
}

// Reset closes the connection without an answer.
func Reset(_ *Server, _ http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }

func (s *Server) wait(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closing:
	}
}
