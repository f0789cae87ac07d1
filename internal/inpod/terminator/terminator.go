// Package terminator terminates TLS in front of slurmrestd, as a sidecar in its pod.
//
// Debian's Slurm has no TLS, so slurmrestd listens only on a Unix socket of its pod. The terminator listens on its port
// instead, and copies bytes between each connection and the socket. It does not parse HTTP: slurmrestd authenticates
// every request as before. The first byte of a connection says whether it is TLS; anything else is plain HTTP, which is
// refused with a message unless it is allowed.
//
// The terminator listens only once it has a certificate and slurmrestd accepts connections, so that a TCP probe shows
// both. It reads the certificate again when the files change. On SIGTERM it still accepts connections until clients
// know that the pod terminates, and then waits for the existing ones: slurmrestd closes them after its last response.
package terminator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Options describe where to listen and what to forward to.
type Options struct {
	// Listen is the address for clients.
	Listen string
	// Socket is the path of the Unix socket that slurmrestd listens on.
	Socket string
	// Certificates is the directory with tls.crt and tls.key.
	Certificates string
	// PlainHTTP also forwards requests without TLS.
	PlainHTTP bool
	// Log receives log lines.
	Log io.Writer
}

const (
	// maxConnections is twice what slurmrestd accepts at once. Further connections wait.
	maxConnections = 256
	// drainDelay is how long connections are accepted after SIGTERM: as long as slurmrestd waits (its preStop hook).
	drainDelay = 3 * time.Second
	// reloadInterval is how often the certificate is read. The kubelet writes it within a minute and a half.
	reloadInterval = 10 * time.Second
	// dialInterval is the pause between attempts to connect to slurmrestd.
	dialInterval = 100 * time.Millisecond
)

// Run terminates TLS until the context is done and all connections are closed.
func Run(ctx context.Context, options Options) error {
	log := slog.New(slog.NewTextHandler(options.Log, nil))
	certificates := &store{directory: options.Certificates}
	if err := certificates.reload(); err != nil {
		return err
	}
	upstream := &upstream{socket: options.Socket, patience: dialPatience}
	if !upstream.wait(ctx, log) {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", options.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: another container of the pod listens on this port; if it is slurmrestd, remove its command "+
			"and listening address from spec.slurmrestd of the RestApi", err)
	}
	if err != nil {
		return err
	}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	tasks.Go(func() { certificates.follow(ctx, reloadInterval, log) })
	front := newFront(certificates, upstream, options.PlainHTTP, log)
	return front.serve(ctx, listener, drainDelay)
}

// A front accepts the connections of clients.
type front struct {
	settings  *tls.Config
	upstream  *upstream
	plainHTTP bool
	log       *slog.Logger
	limits    limits
	// plain limits log lines about plain HTTP.
	plain occasional
}

func newFront(certificates *store, upstream *upstream, plainHTTP bool, log *slog.Logger) *front {
	return &front{
		settings: &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: certificates.get,
		},
		upstream: upstream, plainHTTP: plainHTTP, log: log, limits: defaultLimits,
	}
}

// serve accepts connections until some time after the context is done, and waits for them.
func (f *front) serve(ctx context.Context, listener net.Listener, drain time.Duration) error {
	var connections sync.WaitGroup
	defer connections.Wait()
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		time.Sleep(drain)
		close(closed)
		_ = listener.Close()
	})
	defer stop()
	slots := make(chan struct{}, maxConnections)
	for {
		select {
		case <-closed:
			return nil
		case slots <- struct{}{}:
		}
		connection, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil: // too many open files, for example
			f.log.Error("cannot accept a connection", "error", err)
			<-slots
			time.Sleep(dialInterval)
			continue
		}
		connections.Go(func() {
			defer func() { <-slots }()
			f.handle(connection)
		})
	}
}

// An upstream is slurmrestd's socket.
type upstream struct {
	socket string
	// patience is how long a connection waits for slurmrestd, which may be restarting.
	patience time.Duration
}

const dialPatience = 5 * time.Second

// dial connects to slurmrestd.
func (u *upstream) dial(ctx context.Context) (*net.UnixConn, error) {
	ctx, cancel := context.WithTimeout(ctx, u.patience)
	defer cancel()
	for {
		connection, err := new(net.Dialer).DialContext(ctx, "unix", u.socket)
		if err == nil {
			return connection.(*net.UnixConn), nil
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(dialInterval):
		}
	}
}

// waitInterval is the pause between log lines about a slurmrestd that does not start.
const waitInterval = time.Second

// wait waits until slurmrestd accepts connections. It returns false if the context is done before.
func (u *upstream) wait(ctx context.Context, log *slog.Logger) bool {
	for {
		connection, err := u.dial(ctx)
		if err == nil {
			_ = connection.Close()
			return true
		}
		if ctx.Err() == nil {
			log.Info("waiting for slurmrestd", "error", err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(waitInterval):
		}
	}
}
