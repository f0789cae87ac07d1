// Package slurmcli runs Slurm's own commands in a pod of the cluster and parses what they print.
//
// Nodes are read as JSON, of the version that Slurm 24.11 and 26.05 have in common, by the decoder of the operator's
// own client: what a state means is decided in one place. Jobs are read as text, with a format of squeue's that both
// releases print alike: JSON needs 5 KB for each job, and a queue may have 100,000.
package slurmcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/util/exec"

	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
)

// A Runner runs a command next to slurmctld and returns what it prints.
type Runner func(ctx context.Context, command ...string) ([]byte, error)

// timeout is how long a command of Slurm may take. Its own timeout for an answer of slurmctld is 10 s, for each of
// several slurmctlds.
const timeout = 45 * time.Second

// In returns a Runner for commands in a container.
func In(client *kube.Client, container kube.Container) Runner {
	return func(ctx context.Context, command ...string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		var out, errOut bytes.Buffer
		err := client.Exec(ctx, container, kube.Streams{Out: &out, Err: &errOut}, command...)
		if failure, failed := errors.AsType[exec.CodeExitError](err); failed {
			said := strings.TrimSpace(errOut.String())
			return nil, &Error{Command: name(command), Pod: container.Pod, Code: failure.Code, Said: said}
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("%s in pod %s has not answered within %s; is slurmctld up? see kubectl slurm status",
				name(command), container.Pod, timeout)
		}
		return out.Bytes(), err
	}
}

// name returns the program of a command, without the environment that env sets.
func name(command []string) string {
	for _, word := range command {
		if word != "env" && !strings.Contains(word, "=") {
			return word
		}
	}
	return strings.Join(command, " ")
}

// Error is a command of Slurm that failed.
type Error struct {
	Command, Pod string
	Code         int
	// Said is what the command wrote to standard error.
	Said string
}

// Error returns what Slurm said.
func (e *Error) Error() string {
	if e.Said == "" {
		return fmt.Sprintf("%s in pod %s failed with exit code %d", e.Command, e.Pod, e.Code)
	}
	return fmt.Sprintf("%s in pod %s: %s", e.Command, e.Pod, e.Said)
}

// Nodes reads all Slurm nodes.
func (run Runner) Nodes(ctx context.Context) ([]slurm.Node, error) {
	printed, err := run.printNodes(ctx)
	if err != nil {
		return nil, err
	}
	return rest.ReadNodes(bytes.NewReader(printed))
}

// printNodes returns all Slurm nodes as JSON.
func (run Runner) printNodes(ctx context.Context) ([]byte, error) {
	return run(ctx, "env", "SLURM_JSON=compact", "scontrol", "--json="+rest.PrintedVersion, "show", "nodes")
}
