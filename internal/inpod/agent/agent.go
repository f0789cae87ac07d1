// Package agent keeps a running slurmctld in sync with its configuration files, as a sidecar in its pod.
//
// The operator writes a marker into SlurmctldParameters of slurm.conf (config_hash=…), a token that Slurm ignores
// because it does not know it, but shows in `scontrol show config`. The agent compares the marker in the files with the
// one that slurmctld runs with; while they differ it runs `scontrol reconfigure`, reads the marker back, and retries
// with backoff. It serves its state as JSON, reports slurmctld's readiness better than a TCP probe, and tells the
// operator which Slurm nodes have changed (nodes.go).
//
// The decisions are a state machine without I/O (state.go). Once a second the agent checks the files, which costs a few
// system calls; in steady state it queries slurmctld every 30 seconds.
package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options describe what to watch and where to serve.
type Options struct {
	// Config is the directory with slurmctld's files.
	Config string
	// PIDFile is the file that slurmctld writes when it starts. If it does not exist, a restart is noticed later.
	PIDFile string
	// Listen is the address of the HTTP server.
	Listen string
	// Slurmctld is the address of slurmctld in this pod.
	Slurmctld string
}

// Run runs the agent until the context is done.
func Run(ctx context.Context, opts Options) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", opts.Listen)
	if err != nil {
		return err
	}
	files := &files{config: opts.Config, pidFile: opts.PIDFile}
	agent := &agent{files: files, slurm: scontrol{}}
	ready := &readiness{url: "http://" + opts.Slurmctld + "/readyz", ping: scontrol{}.Active}
	server := &http.Server{
		Handler:           handler(agent.Report, newNodeTracker(scontrol{}.EachNode), ready.Check, files.Key),
		ReadHeaderTimeout: commandTimeout,
	}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	tasks.Go(func() {
		<-ctx.Done()
		_ = server.Close() // the pod is terminating; no client waits for an answer
	})
	tasks.Go(func() { agent.run(ctx) })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// commands are the part of Slurm's commands that the agent uses to apply a configuration.
type commands interface {
	// Query returns what slurmctld runs with. The error is errDown if slurmctld does not answer.
	Query(ctx context.Context) (answer, error)
	// Reconfigure makes slurmctld reread its files.
	Reconfigure(ctx context.Context) error
}

// watched is the part of files that the agent uses.
type watched interface {
	Observe() observation
}

type agent struct {
	files watched
	slurm commands

	mutex sync.Mutex
	state state
}

// run checks the files once a second and does what the state requires.
func (a *agent) run(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		a.step(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// step acts until there is nothing to do for now, which is soon: each action delays the next of its type.
func (a *agent) step(ctx context.Context) {
	seen := a.files.Observe()
	for ctx.Err() == nil {
		next, action := a.currentState().next(time.Now(), seen)
		switch action {
		case wait:
			a.setState(next)
			return
		case query:
			answer, err := a.slurm.Query(ctx)
			a.setState(next.queried(time.Now(), answer, err))
		case reconfigure:
			err := a.slurm.Reconfigure(ctx)
			a.setState(next.reconfigured(time.Now(), err))
		}
	}
}

func (a *agent) currentState() state {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.state
}

func (a *agent) setState(next state) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.state = next
}

// Report returns what the agent knows.
func (a *agent) Report() Report { return a.currentState().report() }
