// Package slurmtest is an in-memory Slurm cluster behind an HTTP server that answers like slurmrestd.
//
// It implements two releases, because the real ones differ: 26.05 and 24.11. It has nodes that drain, jobs that start,
// run for as long as their script sleeps and end, reservations, and a clock that tests can set. The contract tests keep
// its answers in line with the real slurmrestd, including its misbehaviour; failures that need a cause are injected as
// Faults.
package slurmtest

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// The supported releases.
const (
	Release2605 = "26.05.5"
	Release2411 = "24.11.5"
)

// Releases are all supported releases, newest first.
var Releases = []string{Release2605, Release2411}

// A Server is a fake cluster.
type Server struct {
	// URL is the server's URL.
	URL string

	release string
	apis    []string
	key     []byte
	server  *httptest.Server
	closing chan struct{} // closed when the server stops, for handlers that hang

	mu           sync.Mutex
	clock        func() time.Time
	booted       time.Time
	down         bool // slurmctld does not answer
	nodes        map[string]*node
	jobs         map[int64]*job
	reservations map[string]*reservation
	nextJob      int64
	nodesChanged int64 // in seconds, like slurmctld's
	jobsChanged  int64
	partsChanged int64
	requeued     int // how often a job has returned to the queue
	epilog       time.Duration
	rpcs         map[string]int64
	faults       []*Fault
	requests     []string
	sent         int64
	lists        int
	listed       int64 // the part of sent that is lists
}

// New starts a cluster without nodes. It is stopped when the test ends.
func New(tb testing.TB, release string) *Server {
	tb.Helper()
	s := &Server{
		release: release, key: make([]byte, 32), clock: time.Now, closing: make(chan struct{}),
		nodes: map[string]*node{}, jobs: map[int64]*job{}, reservations: map[string]*reservation{},
		nextJob: 1, rpcs: map[string]int64{},
	}
	_, _ = rand.Read(s.key) // never fails
	switch release {
	case Release2605:
		s.apis = []string{"v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"}
	case Release2411:
		s.apis = []string{"v0.0.40", "v0.0.41", "v0.0.42"}
	default:
		tb.Fatalf("Slurm %s is not supported", release)
	}
	s.booted = s.clock()
	s.nodesChanged, s.jobsChanged, s.partsChanged = s.booted.Unix(), s.booted.Unix(), s.booted.Unix()
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.server.URL
	tb.Cleanup(s.close)
	return s
}

// Listen also serves on another address, with TLS, until the test ends. It returns the address.
func (s *Server) Listen(tb testing.TB, address string, settings *tls.Config) string {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // slurmrestd has no HTTP/2
	}
	go func() { _ = server.Serve(tls.NewListener(listener, settings)) }() // until it is closed
	tb.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

func (s *Server) close() {
	close(s.closing)
	s.server.CloseClientConnections()
	s.server.Close()
}

// old reports whether the release is 24.11.
func (s *Server) old() bool { return s.release == Release2411 }

// SetClock replaces the cluster's clock. Jobs advance when a request or a method reads it.
func (s *Server) SetClock(clock func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = clock
}

// SetEpilog sets how long jobs are COMPLETING after they have ended.
func (s *Server) SetEpilog(epilog time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epilog = epilog
}

// StopController makes slurmctld unreachable for slurmrestd.
func (s *Server) StopController() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
}

// StartController restarts slurmctld with its state.
func (s *Server) StartController() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.booted = false, s.clock()
	s.rpcs = map[string]int64{}
	s.touchNodes()
	s.jobsChanged, s.partsChanged = s.booted.Unix(), s.booted.Unix()
}

// SetUptime makes slurmctld one that has run for some time.
func (s *Server) SetUptime(uptime time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.booted = s.clock().Add(-uptime)
}

// SetKey replaces the key that signs valid tokens.
func (s *Server) SetKey(key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = bytes.Clone(key)
}

// Token returns a JWT of the user that is valid for an hour.
func (s *Server) Token(user string) string { return s.TokenFor(user, time.Hour) }

// TokenFor returns a JWT with a lifetime, which may be negative.
func (s *Server) TokenFor(user string, lifetime time.Duration) string {
	s.mu.Lock()
	now, key := s.clock(), s.key
	s.mu.Unlock()
	claims := jwt.MapClaims{"sun": user, "iat": now.Unix(), "exp": now.Add(lifetime).Unix()}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(key)
	if err != nil {
		panic(err) // never: strings and numbers always encode
	}
	return token
}

// Requests returns the requests so far, such as "GET nodes/?update_time=1".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Sent returns the bytes of all answers so far.
func (s *Server) Sent() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// Lists returns the number and bytes of full lists of nodes, jobs and so on sent so far, without "unchanged" answers.
func (s *Server) Lists() (count int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists, s.listed
}

// serve routes a request: first to a fault, then to slurmrestd's own answers.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	// A real cluster serves slurmctld's metrics on another port.
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/slurm/")
	api, path, _ := strings.Cut(rest, "/")
	s.mu.Lock()
	name := r.Method + " " + path
	if r.URL.RawQuery != "" {
		name += "?" + r.URL.RawQuery
	}
	s.requests = append(s.requests, name)
	fault := s.takeFault(path)
	s.mu.Unlock()
	if fault != nil {
		fault.Respond(s, w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	if metrics, ok := strings.CutPrefix(r.URL.Path, "/metrics/"); ok && !s.old() && !s.down {
		switch metrics {
		case "partitions":
			s.metrics(w)
		case "jobs":
			s.jobMetrics(w)
		}
		return
	}
	if !ok || !slices.Contains(s.apis, api) {
		s.noSuchPath(w)
		return
	}
	s.answer(w, r, api, path)
}

// noSuchPath is slurmrestd's answer to an unknown path.
func (s *Server) noSuchPath(w http.ResponseWriter) {
	text := "Unable to find requested URL endpoint. Please query the '/openapi/v3' endpoint."
	if s.old() {
		text = "Unable find requested URL. Please view /openapi/v3 for API reference."
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprintln(w, text)
}

// user returns the user of a request's token; empty if the token is not valid.
func (s *Server) user(r *http.Request) string {
	parser := jwt.NewParser(jwt.WithTimeFunc(s.clock), jwt.WithValidMethods([]string{"HS256"}),
		jwt.WithExpirationRequired())
	var claims jwt.MapClaims
	_, err := parser.ParseWithClaims(r.Header.Get("X-SLURM-USER-TOKEN"), &claims,
		func(*jwt.Token) (any, error) { return s.key, nil })
	if err != nil {
		return ""
	}
	user, _ := claims["sun"].(string)
	return user
}
