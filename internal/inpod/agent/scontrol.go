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

// commandTimeout bounds every command. Slurm itself tries for 10 seconds and more when slurmctld is away.
const commandTimeout = 5 * time.Second

// scontrol runs Slurm's own command, which finds slurmctld and its key as everybody does, in /etc/slurm.
type scontrol struct{}

var version = regexp.MustCompile(`(?m)^SLURM_VERSION\s*=\s*(\S+)`)

// Ask returns what slurmctld runs with.
func (s scontrol) Ask(ctx context.Context) (answer, error) {
	// A ping fails at once where the question below would try again for 10 seconds.
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

// Reconfigure makes slurmctld read its files.
func (s scontrol) Reconfigure(ctx context.Context) error {
	_, err := s.run(ctx, "reconfigure")
	return err
}

// up is a line of `scontrol ping` about a slurmctld that is up.
var up = regexp.MustCompile(`Slurmctld\(\S+\) at (\S+) is UP`)

// Active returns the name of the slurmctld that is in charge: the first that is up.
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

// run runs scontrol. When it fails, that is because slurmctld does not answer, or because scontrol, which reads the same
// slurm.conf, cannot read it.
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
	const enough = 1000
	said := strings.TrimSpace(stderr.String() + stdout.String())
	said = strings.ToValidUTF8(said[:min(len(said), enough)], "")
	what := "scontrol " + strings.Join(args, " ")
	switch {
	case ctx.Err() != nil:
		return stdout.String(), fmt.Errorf("%w: %s took longer than %s: %s", errDown, what, commandTimeout, said)
	case errors.Is(err, exec.ErrNotFound), strings.Contains(said, "fatal: "):
		return stdout.String(), fmt.Errorf("%s: %w: %s", what, err, said)
	default:
		return stdout.String(), fmt.Errorf("%w: %s: %w: %s", errDown, what, err, said)
	}
}
