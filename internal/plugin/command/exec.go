package command

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
)

// shell starts the best shell that an image has.
var shell = []string{"sh", "-c", "exec $(command -v bash || command -v sh)"}

func execCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   "exec [-- COMMAND...]",
		Short: "Run a command in the pod of the active slurmctld, or a shell",
		Long: `Runs a command in the pod of the active slurmctld, as SlurmUser, who administers Slurm. Without a command it
starts a shell. "kubectl slurm -- COMMAND" is short for "kubectl slurm exec -- COMMAND". If slurmctld is external, it
runs as root in a login pod, or in a slurmd pod if there is none. It needs the right to create pods/exec.`,
		Example: `  kubectl slurm exec
  kubectl slurm exec -- sinfo --Node --long
  kubectl slurm -- scontrol show job 7`,
		RunE: session.passThrough,
	}
}

func sshCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   "ssh NODE [-- COMMAND...]",
		Short: "Run a shell or a command in the slurmd pod of a Slurm node",
		Long: `Runs a shell, or a command, as root in the container slurmd of a Slurm node. It is no ssh: it needs the right to create
pods/exec, works without sshd, and is not part of any job.`,
		Example: `  kubectl slurm ssh gpu-3
  kubectl slurm ssh gpu-3 -- nvidia-smi`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: session.complete(session.nodeNames),
		RunE: func(command *cobra.Command, arguments []string) error {
			ctx := command.Context()
			client, namespace, err := session.connect(false)
			if err != nil {
				return err
			}
			pods, err := client.Workers(ctx, namespace, session.controller)
			if err != nil {
				return err
			}
			for i := range pods {
				if pod := &pods[i]; kube.SlurmNode(pod) == arguments[0] || pod.Name == arguments[0] {
					return runIn(command, client, kube.Container{
						Namespace: pod.Namespace, Pod: pod.Name, Container: string(naming.Slurmd),
					}, arguments[1:])
				}
			}
			return fmt.Errorf("no slurmd pod in the namespace %s is the Slurm node %s; see kubectl slurm nodes", namespace,
				arguments[0])
		},
	}
}

// passThrough runs a command, or a shell, in the pod of slurmctld.
func (s *session) passThrough(command *cobra.Command, words []string) error {
	ctx := command.Context()
	client, namespace, err := s.connect(false)
	if err != nil {
		return err
	}
	controller, err := s.findController(ctx, client, namespace)
	if err != nil {
		return err
	}
	container, err := slurmcli.Find(ctx, client, controller)
	if err != nil {
		return err
	}
	return runIn(command, client, container, words)
}

// runIn runs a command in a container with the streams of the plugin; without a command, a shell. A shell on a terminal
// gets a terminal of its own; for other commands only redirected input is passed on.
func runIn(command *cobra.Command, client *kube.Client, container kube.Container, words []string) error {
	ctx, in := command.Context(), command.InOrStdin()
	streams := kube.Streams{In: in, Out: command.OutOrStdout(), Err: command.ErrOrStderr()}
	switch {
	case output.IsTerminal(in) && len(words) == 0:
		return inTerminal(ctx, client, container, streams)
	case output.IsTerminal(in):
		streams.In = nil
	case len(words) == 0:
		words = shell
	}
	return client.Exec(ctx, container, streams, words...)
}

// inTerminal runs a shell on the user's terminal.
func inTerminal(ctx context.Context, client *kube.Client, container kube.Container, streams kube.Streams) error {
	file, _ := streams.In.(*os.File) // only a file is a terminal
	descriptor := int(file.Fd())     //nolint:gosec // a file descriptor is a small number
	before, err := term.MakeRaw(descriptor)
	if err != nil {
		return fmt.Errorf("preparing the terminal: %w", err)
	}
	defer func() { _ = term.Restore(descriptor, before) }()
	streams.Terminal = true
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	streams.Sizes = newSizes(ctx, descriptor)
	return client.Exec(ctx, container, streams, shell...)
}
