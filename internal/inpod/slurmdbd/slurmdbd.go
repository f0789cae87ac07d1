// Package slurmdbd runs slurmdbd, reports its database errors and conversions, and does not let it be interrupted.
//
// A slurmdbd that cannot reach its database neither exits nor listens: it logs an error and retries. A probe shows that
// something is wrong, but not what. So the operator's helper starts slurmdbd in its pod, forwards its log, keeps the
// last database error, and serves it to the operator.
//
// A slurmdbd of a new release first converts its database, which takes hours for a large one. Until it is done,
// slurmdbd has no handler for SIGTERM, so that the signal kills it at once: it loses what it has converted, and leaves
// tables of both releases. So the helper keeps the signal back until slurmdbd has started, or until its log says that
// it waits for its database.
package slurmdbd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
)

// ReportPath is where the Report is served.
const ReportPath = "/database"

// A Phase is what slurmdbd does.
type Phase string

// Phases of slurmdbd.
const (
	// Starting means that slurmdbd starts, and may convert its database: its log does not say.
	Starting Phase = "Starting"
	// Waiting means that slurmdbd waits for its database.
	Waiting Phase = "Waiting"
	// Converting means that slurmdbd converts its database to its release.
	Converting Phase = "Converting"
	// Started means that slurmdbd has converted its database, if that was necessary, and serves clients.
	Started Phase = "Started"
)

// A Report is slurmdbd's last database error, and what it does.
type Report struct {
	// Code is the error number: below 2000 from the server, above from the client library. It is 0 if there is no
	// error.
	Code int `json:"code,omitempty"`
	// Text is the error message of the server or the library.
	Text string `json:"text,omitempty"`
	// Phase is empty in reports of earlier versions' helpers.
	Phase Phase `json:"phase,omitempty"`
	// Release is slurmdbd's release; empty if it is not known.
	Release string `json:"release,omitempty"`
	// Since is when the conversion began, and Step its last step in the words of the log.
	Since time.Time `json:"since,omitzero"`
	Step  string    `json:"step,omitempty"`
}

// Options describe what to run and where to serve.
type Options struct {
	// Command is slurmdbd, in the foreground.
	Command []string
	// Listen is the address of the HTTP server, and Key the file with the JWT key that its clients must have.
	Listen, Key string
	// Log receives slurmdbd's output.
	Log io.Writer
	// ExitTimeout is how long slurmdbd may take to exit on SIGTERM before it is killed; 0 for as long as it takes.
	// Without its database, it may never exit.
	ExitTimeout time.Duration
}

const (
	// releaseTimeout limits how long slurmdbd may take to print its release.
	releaseTimeout = 10 * time.Second
	// pollInterval is how often slurmdbd is examined while SIGTERM is kept back.
	pollInterval = 200 * time.Millisecond
)

// Run runs slurmdbd until it exits; when the context is done, slurmdbd is terminated as soon as it cannot be converting
// its database.
func Run(ctx context.Context, options Options) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", options.Listen)
	if err != nil {
		return err
	}
	watch := &watch{now: time.Now}
	server := &http.Server{Handler: handler(watch.Report, options.Key), ReadHeaderTimeout: 5 * time.Second}
	var background sync.WaitGroup
	defer background.Wait()
	defer server.Close()
	background.Go(func() { _ = server.Serve(listener) }) // stops with slurmdbd, which does not depend on it

	release := releaseOf(ctx, options.Command[0])
	if ctx.Err() != nil {
		return nil // the exit was requested before slurmdbd was started
	}
	running, terminate := context.WithCancel(context.WithoutCancel(ctx))
	defer terminate()
	log := io.MultiWriter(options.Log, watch)
	command := exec.CommandContext(running, options.Command[0], options.Command[1:]...)
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = options.ExitTimeout
	if err = command.Start(); err != nil {
		return fmt.Errorf("running %s: %w", options.Command[0], err)
	}
	watch.runs(command.Process.Pid, release)
	background.Go(func() {
		defer terminate()
		awaitTermination(ctx, running, watch)
	})
	err = command.Wait()
	if ctx.Err() != nil && command.ProcessState != nil && command.ProcessState.Success() {
		return nil // the exit was requested
	}
	if err == nil {
		err = errors.New("it exited unexpectedly")
	}
	return fmt.Errorf("running %s: %w", options.Command[0], err)
}

// awaitTermination returns when termination is requested and slurmdbd cannot be converting its database, or when it is
// no longer running.
func awaitTermination(requested, running context.Context, watch *watch) {
	select {
	case <-requested.Done():
	case <-running.Done():
		return
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if phase := watch.Report().Phase; phase == Started || phase == Waiting {
			return
		}
		select {
		case <-ticker.C:
		case <-running.Done():
			return
		}
	}
}

// releaseOf returns the release of slurmdbd; empty if it does not print it.
func releaseOf(ctx context.Context, program string) string {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "-V").Output()
	words := strings.Fields(string(out)) // such as "slurm 26.05.1", or "slurm-wlm 24.11.5" of Debian
	if err != nil || len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

func handler(current func() Report, key string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ReportPath,
		report.Handler(report.Current(current), func() ([]byte, error) { return os.ReadFile(key) }))
	return mux
}
