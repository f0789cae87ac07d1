// Package slurmdbd runs slurmdbd and tells what it says about its database.
//
// A slurmdbd that cannot reach its database neither ends nor listens: it says so in its log and tries again. A probe can
// tell that something is wrong, but not what. So the operator's helper starts slurmdbd in its pod, passes its log on, keeps
// the last complaint about the database, and serves it to the operator.
package slurmdbd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// path is where the report is served.
const path = "/database"

// A Report is what slurmdbd says about its database.
type Report struct {
	// Code is the number of the error: one of the server's below 2000, one of the client's library above. It is 0 when
	// slurmdbd does not complain.
	Code int `json:"code,omitempty"`
	// Text is the error in the words of the server or the library.
	Text string `json:"text,omitempty"`
}

// Options say what to run and where to serve.
type Options struct {
	// Command is slurmdbd, in the foreground.
	Command []string
	// Listen is the address of the HTTP server.
	Listen string
	// Log gets what slurmdbd prints.
	Log io.Writer
}

// Run runs slurmdbd until it ends; when the context ends, slurmdbd is asked to.
func Run(ctx context.Context, options Options) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", options.Listen)
	if err != nil {
		return err
	}
	watch := &watch{now: time.Now}
	server := &http.Server{Handler: handler(watch.Report), ReadHeaderTimeout: 5 * time.Second}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer server.Close()
	serving.Go(func() { _ = server.Serve(listener) }) // ends with slurmdbd, which runs as well without

	log := io.MultiWriter(options.Log, watch)
	command := exec.CommandContext(ctx, options.Command[0], options.Command[1:]...)
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	err = command.Run()
	if ctx.Err() != nil && command.ProcessState != nil && command.ProcessState.Success() {
		return nil // it was asked to end
	}
	if err == nil {
		err = errors.New("it has ended by itself")
	}
	return fmt.Errorf("running %s: %w", options.Command[0], err)
}

func handler(report func() Report) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(writer).Encode(report()) // whoever asked has gone
	})
	return mux
}

// Ask asks the helper at an address, host:port, for its report.
func Ask(ctx context.Context, address string) (Report, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return Report{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Report{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Report{}, fmt.Errorf("%s answers %s", request.URL, response.Status)
	}
	const enough = 4096 // no complaint is longer
	var report Report
	return report, json.NewDecoder(io.LimitReader(response.Body, enough)).Decode(&report)
}
