// Package agent keeps a running slurmctld in step with its configuration files, from beside it in its pod.
//
// The operator writes a marker into SlurmctldParameters of slurm.conf (config_hash=…), a token that Slurm does not know and
// so ignores, but shows in `scontrol show config`. The agent compares the marker in the files with the one that slurmctld
// runs with; while they differ it runs `scontrol reconfigure`, reads back, and tries again ever more rarely. What it knows
// it serves as JSON, and it knows better than a TCP probe whether slurmctld is ready.
//
// The decisions are a state machine without I/O (state.go). Once a second the agent looks at the files, which costs a few
// system calls; at rest it asks slurmctld every half a minute.
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

// Options say what to watch and where to serve.
type Options struct {
	// Config is the directory with slurmctld's files.
	Config string
	// PIDFile is a file that slurmctld writes when it starts. It may not exist; a restart is then noticed later.
	PIDFile string
	// Listen is the address of the HTTP server.
	Listen string
	// Slurmctld is the address of slurmctld in this pod.
	Slurmctld string
}

// Run runs the agent until the context ends.
func Run(ctx context.Context, opts Options) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", opts.Listen)
	if err != nil {
		return err
	}
	agent := &agent{files: &files{config: opts.Config, pidFile: opts.PIDFile}, slurm: scontrol{}}
	ready := &readiness{url: "http://" + opts.Slurmctld + "/readyz", ping: scontrol{}.Active}
	server := &http.Server{Handler: handler(agent.Report, ready.Check), ReadHeaderTimeout: commandTimeout}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	tasks.Go(func() {
		<-ctx.Done()
		_ = server.Close() // nobody waits for an answer of a pod that is going away
	})
	tasks.Go(func() { agent.run(ctx) })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// slurm is what the agent needs of Slurm's commands.
type slurm interface {
	// Ask returns what slurmctld runs with. The error is errDown when slurmctld does not answer.
	Ask(ctx context.Context) (answer, error)
	// Reconfigure makes slurmctld read its files.
	Reconfigure(ctx context.Context) error
}

// watched is what the agent needs of the files.
type watched interface {
	Look() observation
}

type agent struct {
	files watched
	slurm slurm

	mutex sync.Mutex
	state state
}

// run looks at the files once a second and does what the state then calls for.
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

// step acts until there is nothing to do for now, which is soon: each action puts off the next of its kind.
func (a *agent) step(ctx context.Context) {
	seen := a.files.Look()
	for ctx.Err() == nil {
		next, action := a.current().next(time.Now(), seen)
		switch action {
		case wait:
			a.keep(next)
			return
		case ask:
			answer, err := a.slurm.Ask(ctx)
			a.keep(next.asked(time.Now(), answer, err))
		case reconfigure:
			err := a.slurm.Reconfigure(ctx)
			a.keep(next.reconfigured(time.Now(), err))
		}
	}
}

func (a *agent) current() state {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.state
}

func (a *agent) keep(next state) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.state = next
}

// Report is what the agent knows.
func (a *agent) Report() Report { return a.current().report() }
