package terminator

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/certificate"
)

const name = "slurm-restapi.ns.svc"

// A pod is a slurmrestd with a terminator in front of it.
type pod struct {
	*front
	address   string
	socket    string
	directory string
	store     *store
	// requests is the number of requests that slurmrestd got.
	requests atomic.Int64
	// stop terminates the pod, and done receives the result of the terminator.
	stop context.CancelFunc
	done chan error
}

// newPod starts a terminator. slurmrestd starts with listen.
func newPod(t *testing.T, plainHTTP bool, changes ...func(*front)) *pod {
	t.Helper()
	directory := t.TempDir()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	pod := &pod{
		socket: filepath.Join(directory, "socket"), directory: directory, store: &store{directory: directory},
		done: make(chan error, 1),
	}
	pod.issue(t)
	if err := pod.store.reload(); err != nil {
		t.Fatal(err)
	}
	pod.front = newFront(pod.store, &upstream{socket: pod.socket, patience: time.Minute}, plainHTTP, log)
	for _, change := range changes {
		change(pod.front)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pod.address = listener.Addr().String()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	pod.stop = stop
	go func() { pod.done <- pod.serve(ctx, listener, 0) }()
	t.Cleanup(stop)
	return pod
}

// issue writes a new certificate.
func (p *pod) issue(t *testing.T) {
	t.Helper()
	pair, err := certificate.NewPair([]string{name}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(p.directory, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// listen starts slurmrestd on the socket.
func (p *pod) listen(t *testing.T, handler http.HandlerFunc) *http.Server {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.requests.Add(1)
			handler(w, r)
		}),
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// client returns a client that accepts only the current certificate of the pod.
func (p *pod) client(t *testing.T, change func(*tls.Config)) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(p.store.served.Load().Leaf)
	settings := &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12}
	if change != nil {
		change(settings)
	}
	transport := &http.Transport{TLSClientConfig: settings}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get sends a request and returns the response.
func (p *pod) get(t *testing.T, client *http.Client, scheme string) (status int, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://"+p.address+"/slurm", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// answer is slurmrestd's handler for tests that are not about it.
func answer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, r.Method+" "+r.URL.Path)
}

func TestTLSIsTerminated(t *testing.T) {
	pod := newPod(t, false)
	pod.listen(t, answer)
	client := pod.client(t, nil)
	for range 3 { // the connection is reused
		if status, body, err := pod.get(t, client, "https"); err != nil || status != 200 || body != "GET /slurm" {
			t.Fatalf("got %d %q, error %v", status, body, err)
		}
	}
	if _, _, err := pod.get(t, pod.client(t, func(settings *tls.Config) {
		settings.MinVersion, settings.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	}), "https"); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: error is %v", err)
	}
	if requests := pod.requests.Load(); requests != 3 {
		t.Errorf("slurmrestd got %d requests", requests)
	}
}

func TestPlainHTTP(t *testing.T) {
	t.Run("is refused", func(t *testing.T) {
		pod := newPod(t, false)
		pod.listen(t, answer)
		status, body, err := pod.get(t, pod.client(t, nil), "http")
		if err != nil || status != http.StatusBadRequest || !strings.Contains(body, "https://") ||
			!strings.Contains(body, "spec.tls.plainHTTP") {
			t.Errorf("got %d %q, error %v", status, body, err)
		}
		if pod.requests.Load() > 0 {
			t.Error("slurmrestd got the request")
		}
	})
	t.Run("is refused after a large request", func(t *testing.T) {
		pod := newPod(t, false)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+pod.address,
			strings.NewReader(strings.Repeat("x", 4<<20)))
		if err != nil {
			t.Fatal(err)
		}
		response, err := pod.client(t, nil).Do(request)
		if err != nil {
			t.Fatal(err) // a reset would hide the reason
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("got %s", response.Status)
		}
	})
	t.Run("is forwarded if allowed", func(t *testing.T) {
		pod := newPod(t, true)
		pod.listen(t, answer)
		for _, scheme := range []string{"http", "https", "http"} {
			if status, body, err := pod.get(t, pod.client(t, nil), scheme); err != nil || status != 200 ||
				body != "GET /slurm" {
				t.Errorf("%s: got %d %q, error %v", scheme, status, body, err)
			}
		}
	})
}

func TestChangedCertificateIsServed(t *testing.T) {
	pod := newPod(t, false)
	pod.listen(t, answer)
	before := pod.client(t, nil)
	if _, _, err := pod.get(t, before, "https"); err != nil {
		t.Fatal(err)
	}
	pod.issue(t)
	if err := pod.store.reload(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := pod.get(t, before, "https"); err != nil {
		t.Errorf("an open connection is cut: %v", err)
	}
	before.CloseIdleConnections()
	if _, _, err := pod.get(t, before, "https"); err == nil {
		t.Error("the former certificate is still served")
	}
	if _, _, err := pod.get(t, pod.client(t, nil), "https"); err != nil {
		t.Error(err)
	}
}

func TestCertificateFilesAreFollowed(t *testing.T) {
	pod := newPod(t, false)
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go pod.store.follow(ctx, reloadInterval, pod.log)
		first := pod.store.served.Load()
		if err := os.WriteFile(filepath.Join(pod.directory, "tls.key"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * reloadInterval)
		synctest.Wait()
		if pod.store.served.Load() != first {
			t.Error("damaged files have replaced the certificate")
		}
		pod.issue(t)
		time.Sleep(2 * reloadInterval)
		synctest.Wait()
		if pod.store.served.Load() == first {
			t.Error("the new certificate is not loaded")
		}
	})
}

func TestSlowClientsDoNotBlockOthers(t *testing.T) {
	pod := newPod(t, false)
	release := make(chan struct{})
	pod.listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Slow") != "" {
			<-release
		}
		answer(w, r)
	})
	defer close(release)
	for range 20 {
		silent, err := new(net.Dialer).DialContext(t.Context(), "tcp", pod.address)
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		stuck, err := new(net.Dialer).DialContext(t.Context(), "tcp", pod.address)
		if err != nil {
			t.Fatal(err)
		}
		defer stuck.Close()
		if _, err := stuck.Write([]byte{handshakeRecord, 3, 1}); err != nil {
			t.Fatal(err)
		}
		dialer := tls.Dialer{Config: pod.client(t, nil).Transport.(*http.Transport).TLSClientConfig}
		waiting, err := dialer.DialContext(t.Context(), "tcp", pod.address)
		if err != nil {
			t.Fatal(err)
		}
		defer waiting.Close()
		if _, err := waiting.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\nSlow: yes\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := pod.get(t, pod.client(t, nil), "https"); err != nil {
		t.Error(err)
	}
}

func TestUnusedConnectionsAreClosed(t *testing.T) {
	for what, sent := range map[string]string{"silent": "", "in the handshake": "\x16\x03\x01", "idle": "GET"} {
		t.Run(what, func(t *testing.T) {
			pod := newPod(t, true, func(front *front) {
				front.limits = limits{
					handshake: 50 * time.Millisecond, idle: 50 * time.Millisecond, linger: time.Millisecond,
				}
			})
			pod.listen(t, answer)
			connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", pod.address)
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			if _, err := connection.Write([]byte(sent)); err != nil {
				t.Fatal(err)
			}
			if err := connection.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, connection); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection is still open")
			}
		})
	}
}

func TestResponseInFlightCompletesOnShutdown(t *testing.T) {
	pod := newPod(t, false)
	started, release := make(chan struct{}), make(chan struct{})
	slurmrestd := pod.listen(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begin ")
		_ = http.NewResponseController(w).Flush()
		close(started)
		<-release
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
	})
	type result struct {
		body string
		err  error
	}
	results := make(chan result, 1)
	client := pod.client(t, nil)
	go func() {
		_, body, err := pod.get(t, client, "https")
		results <- result{body, err}
	}()
	<-started
	pod.stop()
	for { // until it accepts no more connections
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", pod.address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			break
		}
		if err == nil {
			_ = connection.Close()
		}
	}
	select {
	case err := <-pod.done:
		t.Fatalf("terminated before the response: %v", err)
	default:
	}
	close(release)
	if got := <-results; got.err != nil || len(got.body) != len("begin ")+1<<20 {
		t.Errorf("got %d bytes, error %v", len(got.body), got.err)
	}
	// slurmrestd closes the idle connection when it exits.
	if err := slurmrestd.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-pod.done; err != nil {
		t.Error(err)
	}
}

func TestRequestWaitsForRestartingSlurmrestd(t *testing.T) {
	pod := newPod(t, false)
	results := make(chan error, 1)
	client := pod.client(t, nil)
	go func() {
		_, _, err := pod.get(t, client, "https")
		results <- err
	}()
	pod.listen(t, answer)
	if err := <-results; err != nil {
		t.Error(err)
	}
}

func TestRequestWithoutSlurmrestdIsAnswered(t *testing.T) {
	pod := newPod(t, false, func(front *front) { front.upstream.patience = time.Millisecond })
	if status, body, err := pod.get(t, pod.client(t, nil), "https"); err != nil ||
		status != http.StatusServiceUnavailable || !strings.Contains(body, "slurmrestd") {
		t.Errorf("got %d %q, error %v", status, body, err)
	}
}

// A client that closes its sending side after the request still gets the response.
func TestHalfClosedClientGetsItsResponse(t *testing.T) {
	pod := newPod(t, true)
	pod.listen(t, answer)
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", pod.address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := fmt.Fprint(connection, "GET /slurm HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := connection.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "GET /slurm" {
		t.Errorf("got %q, error %v", body, err)
	}
}

func TestRunListensOnlyWhenReady(t *testing.T) {
	directory := t.TempDir()
	options := Options{Listen: "127.0.0.1:0", Socket: filepath.Join(directory, "socket"), Certificates: directory,
		Log: t.Output()}
	if err := Run(t.Context(), options); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a certificate: %v", err)
	}
	pod := newPod(t, false)
	options.Certificates = pod.directory
	options.Listen = pod.address // taken: Run would fail if it listened before slurmrestd does
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	if err := Run(ctx, options); err != nil {
		t.Errorf("without slurmrestd: %v", err)
	}
	pod.listen(t, answer)
	options.Socket = pod.socket
	if err := Run(t.Context(), options); !errors.Is(err, syscall.EADDRINUSE) ||
		!strings.Contains(err.Error(), "spec.slurmrestd") {
		t.Errorf("with a taken port: %v", err)
	}
}
