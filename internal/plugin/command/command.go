// Package command holds the commands of the plugin.
//
// Each command is one file: its flags, what it reads, and the call of a pure package that makes a result of that. The
// result is printed by package output. To add a command, write the pure package with its golden tests, add a file here
// with a function like statusCommand, and list it in New.
package command

import (
	"errors"
	"fmt"
	"strings"

	migrate "github.com/slurm-operator/slurm-operator/internal/migrate/command"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
)

// ExitCode is an error that ends the program with a code and without a message: the output has said everything.
type ExitCode int

// Error returns the code.
func (c ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

const about = `kubectl slurm shows how the Slurm clusters of slurm-operator are, why, and what to do.

It runs with your own rights: what you may not read is left out, and the missing right is named. Commands that ask
Slurm itself run its programs in the pod of slurmctld, which needs the right to create pods/exec; without it they show
what Kubernetes' objects say. If slurmctld is external, they run in a login pod, or in a slurmd pod if there is none.

To run any program of Slurm in the pod of slurmctld, write it after two dashes.`

// New returns the root command.
func New(version string) *cobra.Command { return newRoot(newSession(), version) }

func newRoot(session *session, version string) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-slurm",
		Short: "Shows how Slurm clusters on Kubernetes are, why, and what to do",
		Long:  about,
		Example: `  kubectl slurm status
  kubectl slurm why gpu-3
  kubectl slurm -- scontrol show job 7`,
		Version:           version,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl slurm"},
		Args:              cobra.ArbitraryArgs,
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		RunE: func(command *cobra.Command, arguments []string) error {
			switch {
			case len(arguments) == 0:
				return command.Help()
			case command.ArgsLenAtDash() == 0:
				return session.passThrough(command, arguments)
			default:
				return unknown(command, arguments[0])
			}
		},
	}
	session.addFlags(root.PersistentFlags())
	root.AddCommand(
		statusCommand(session),
		nodesCommand(session),
		jobsCommand(session),
		topCommand(session),
		whyCommand(session),
		drainCommand(session),
		undrainCommand(session),
		execCommand(session),
		sshCommand(session),
		doctorCommand(session),
		configCommand(session),
		planCommand(session),
		logsCommand(session),
		eventsCommand(session),
		upgradeCommand(session),
		reportCommand(session),
		migrate.New("kubectl slurm"),
	)
	session.addCompletions(root)
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = true // kubectl completes by kubectl_complete-slurm
	return root
}

// unknown returns the error about a command that does not exist.
func unknown(root *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q", name)
	if similar := root.SuggestionsFor(name); len(similar) > 0 {
		return errors.New(text + "; did you mean " + strings.Join(similar, " or ") + "?")
	}
	return errors.New(text + "; see kubectl slurm --help, or run it in the pod of slurmctld: kubectl slurm -- " + name)
}

// noCluster explains an error of the kubeconfig.
func noCluster(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return errors.New("there is no kubeconfig; set KUBECONFIG or --kubeconfig")
	}
	return fmt.Errorf("reading the kubeconfig: %w", err)
}
