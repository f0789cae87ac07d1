package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// pollInterval is how often slurmctld is asked whether it is up.
	pollInterval = 100 * time.Millisecond
	// askTimeout bounds one question to it.
	askTimeout = 3 * time.Second
	// stopTimeout is how long it may take to end before it is killed.
	stopTimeout = 2 * time.Second
)

// errRefused means that slurmctld does not run with the configuration.
var errRefused = errors.New("slurmctld refused the configuration")

// runSlurmctld runs slurmctld until it answers, and returns what it printed. The error is errRefused when it has ended by
// itself or never will answer.
func runSlurmctld(ctx context.Context, conf string, copyTo io.Writer) (string, error) {
	var log logBuffer
	// Not of ctx: when that ends, slurmctld is first asked to end.
	command := exec.CommandContext(context.WithoutCancel(ctx), "slurmctld", "-D", "-f", conf)
	command.Stdout = io.MultiWriter(&log, copyTo)
	command.Stderr = command.Stdout
	command.WaitDelay = stopTimeout
	if err := command.Start(); err != nil {
		return "", fmt.Errorf("starting slurmctld: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()

	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return log.String(), fmt.Errorf("%w: %w", errRefused, endOf(err))
		case <-ctx.Done():
			stop(command.Process, ended)
			return log.String(), errors.New("slurmctld neither answered nor ended in time")
		case <-ticker.C:
		}
		if waitsForFile(log.String()) {
			stop(command.Process, ended)
			return log.String(), errRefused
		}
		if !answers(ctx, conf) {
			continue
		}
		select {
		case err := <-ended:
			return log.String(), fmt.Errorf("%w after it had answered: %w", errRefused, endOf(err))
		default:
			stop(command.Process, ended)
			return log.String(), nil
		}
	}
}

// answers tells whether slurmctld is up and has its partitions.
func answers(ctx context.Context, conf string) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for _, question := range [][]string{{"ping"}, {"show", "config"}, {"show", "partition"}} {
		command := exec.CommandContext(ctx, "scontrol", question...)
		command.Env = append(os.Environ(), "SLURM_CONF="+conf)
		output, err := command.Output()
		if err != nil || question[0] == "ping" && !strings.Contains(string(output), " is UP") {
			return false
		}
	}
	return true
}

// stop ends slurmctld.
func stop(process *os.Process, ended <-chan error) {
	_ = process.Signal(syscall.SIGTERM) // fails only when it has just ended
	select {
	case <-ended:
	case <-time.After(stopTimeout):
		_ = process.Kill()
		<-ended
	}
}

// endOf says how a process ended that should not have.
func endOf(err error) error {
	if err == nil {
		return errors.New("it ended")
	}
	return fmt.Errorf("it ended: %w", err)
}

// logBuffer keeps the beginning of what slurmctld prints, where its reasons are, for another goroutine to read.
type logBuffer struct {
	mutex   sync.Mutex
	content bytes.Buffer
}

// maxLog is room for two complaints about each of the most nodes that Slurm can have.
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
