package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// commandTimeout bounds every command. Slurm itself retries for 10 seconds and more if slurmctld is down.
const commandTimeout = 5 * time.Second

// scontrol runs Slurm's own command, which finds slurmctld and its key in /etc/slurm.
type scontrol struct{}

var version = regexp.MustCompile(`(?m)^SLURM_VERSION\s*=\s*(\S+)`)

// Query returns what slurmctld runs with.
func (s scontrol) Query(ctx context.Context) (answer, error) {
	// A ping fails immediately, while the command below would retry for 10 seconds.
	if _, err := s.Active(ctx); err != nil {
		return answer{}, err
	}
	output, err := s.run(ctx, "show", "config")
	if err != nil {
		return answer{}, err
	}
	found := answer{Marker: markerIn(output)}
	if match := version.FindStringSubmatch(output); match != nil {
		found.Version = match[1]
	}
	return found, nil
}

// Reconfigure makes slurmctld reread its files.
func (s scontrol) Reconfigure(ctx context.Context) error {
	_, err := s.run(ctx, "reconfigure")
	return err
}

// up matches a line of `scontrol ping` about a slurmctld that is up.
var up = regexp.MustCompile(`Slurmctld\(\S+\) at (\S+) is UP`)

// Active returns the name of the active slurmctld: the first that is up.
func (s scontrol) Active(ctx context.Context) (string, error) {
	output, err := s.run(ctx, "ping")
	if match := up.FindStringSubmatch(output); match != nil {
		return match[1], nil
	}
	if err == nil {
		err = fmt.Errorf("%w: %s", errDown, strings.TrimSpace(output))
	}
	return "", err
}

// run runs scontrol. If it fails, slurmctld does not answer, or scontrol cannot parse slurm.conf, which both read.
func (scontrol) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "scontrol", args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if err == nil {
		return stdout.String(), nil
	}
	const maxMessage = 1000
	message := strings.TrimSpace(stderr.String() + stdout.String())
	message = strings.ToValidUTF8(message[:min(len(message), maxMessage)], "")
	what := "scontrol " + strings.Join(args, " ")
	switch {
	case ctx.Err() != nil:
		return stdout.String(), fmt.Errorf("%w: %s took longer than %s: %s", errDown, what, commandTimeout, message)
	case errors.Is(err, exec.ErrNotFound), strings.Contains(message, "fatal: "):
		return stdout.String(), fmt.Errorf("%s: %w: %s", what, err, message)
	default:
		return stdout.String(), fmt.Errorf("%w: %s: %w: %s", errDown, what, err, message)
	}
}
