package validation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// pollInterval is how often slurmctld is checked for readiness.
	pollInterval = 100 * time.Millisecond
	// queryTimeout bounds one readiness check.
	queryTimeout = 3 * time.Second
	// stopTimeout is how long it may take to exit before it is killed.
	stopTimeout = 2 * time.Second
)

// errRefused means that slurmctld does not run with the configuration.
var errRefused = errors.New("slurmctld refused the configuration")

// runSlurmctld runs slurmctld until it answers, and returns its output and its configuration as `scontrol show config`
// prints it. The error is errRefused if slurmctld exits or will never answer.
func runSlurmctld(ctx context.Context, conf string, copyTo io.Writer) (output, config string, err error) {
	var log logBuffer
	// Not ctx: when that is done, slurmctld is first asked to terminate.
	command := exec.CommandContext(context.WithoutCancel(ctx), "slurmctld", "-D", "-f", conf)
	command.Stdout = io.MultiWriter(&log, copyTo)
	command.Stderr = command.Stdout
	command.WaitDelay = stopTimeout
	if err := command.Start(); err != nil {
		return "", "", fmt.Errorf("starting slurmctld: %w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- command.Wait() }()

	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case err := <-exited:
			return log.String(), "", fmt.Errorf("%w: %w", errRefused, exitReason(err))
		case <-ctx.Done():
			stop(command.Process, exited)
			return log.String(), "", errors.New("slurmctld neither answered nor exited in time")
		case <-ticker.C:
		}
		if waitsForFile(log.String()) {
			stop(command.Process, exited)
			return log.String(), "", errRefused
		}
		config, up := answers(ctx, conf)
		if !up {
			continue
		}
		select {
		case err := <-exited:
			return log.String(), "", fmt.Errorf("%w after it had answered: %w", errRefused, exitReason(err))
		default:
			stop(command.Process, exited)
			return log.String(), config, nil
		}
	}
}

// answers returns slurmctld's configuration, and whether slurmctld is up and has its partitions.
func answers(ctx context.Context, conf string) (config string, up bool) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	for _, query := range [][]string{{"ping"}, {"show", "config"}, {"show", "partition"}} {
		command := exec.CommandContext(ctx, "scontrol", query...)
		command.Env = append(os.Environ(), "SLURM_CONF="+conf)
		output, err := command.Output()
		if err != nil || query[0] == "ping" && !strings.Contains(string(output), " is UP") {
			return "", false
		}
		if slices.Equal(query, []string{"show", "config"}) {
			config = string(output)
		}
	}
	return config, true
}

// stop terminates slurmctld.
func stop(process *os.Process, exited <-chan error) {
	_ = process.Signal(syscall.SIGTERM) // fails only if it has just exited
	select {
	case <-exited:
	case <-time.After(stopTimeout):
		_ = process.Kill()
		<-exited
	}
}

// exitReason describes an unexpected exit.
func exitReason(err error) error {
	if err == nil {
		return errors.New("it ended")
	}
	return fmt.Errorf("it ended: %w", err)
}

// logBuffer keeps the beginning of slurmctld's output, which has its reasons, for another goroutine to read.
type logBuffer struct {
	mutex   sync.Mutex
	content bytes.Buffer
}

// maxLog is enough for two messages about each of the nodes of Slurm's largest possible cluster.
const maxLog = 16 << 20

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.content.Write(p[:min(len(p), max(0, maxLog-b.content.Len()))])
	return len(p), nil
}

func (b *logBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.content.String()
}
