// Package slurmdbd runs slurmdbd and reports its database errors.
//
// A slurmdbd that cannot reach its database neither exits nor listens: it logs an error and retries. A probe shows that
// something is wrong, but not what. So the operator's helper starts slurmdbd in its pod, forwards its log, keeps the
// last database error, and serves it to the operator.
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
	"sync"
	"syscall"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
)

// ReportPath is where the Report is served.
const ReportPath = "/database"

// A Report is slurmdbd's last database error.
type Report struct {
	// Code is the error number: below 2000 from the server, above from the client library. It is 0 if there is no
	// error.
	Code int `json:"code,omitempty"`
	// Text is the error message of the server or the library.
	Text string `json:"text,omitempty"`
}

// Options describe what to run and where to serve.
type Options struct {
	// Command is slurmdbd, in the foreground.
	Command []string
	// Listen is the address of the HTTP server, and Key the file with the JWT key that its clients must have.
	Listen, Key string
	// Log receives slurmdbd's output.
	Log io.Writer
}

// Run runs slurmdbd until it exits; when the context is done, slurmdbd is terminated.
func Run(ctx context.Context, options Options) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", options.Listen)
	if err != nil {
		return err
	}
	watch := &watch{now: time.Now}
	server := &http.Server{Handler: handler(watch.Report, options.Key), ReadHeaderTimeout: 5 * time.Second}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer server.Close()
	serving.Go(func() { _ = server.Serve(listener) }) // stops with slurmdbd, which does not depend on it

	log := io.MultiWriter(options.Log, watch)
	command := exec.CommandContext(ctx, options.Command[0], options.Command[1:]...)
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	err = command.Run()
	if ctx.Err() != nil && command.ProcessState != nil && command.ProcessState.Success() {
		return nil // the exit was requested
	}
	if err == nil {
		err = errors.New("it exited unexpectedly")
	}
	return fmt.Errorf("running %s: %w", options.Command[0], err)
}

func handler(current func() Report, key string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ReportPath,
		report.Handler(report.Current(current), func() ([]byte, error) { return os.ReadFile(key) }))
	return mux
}
