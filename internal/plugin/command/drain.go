package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/plugin/drain"
	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
)

func drainCommand(session *session) *cobra.Command {
	var reason string
	return session.drainingCommand(&cobra.Command{
		Use:   "drain HOSTLIST --reason=TEXT",
		Short: "Close Slurm nodes to new jobs",
		Long: `Drains Slurm nodes: running jobs go on, and no new ones start. The operator never lifts such a drain. The reason that
Slurm shows has your name. Nodes that somebody else has drained keep their reason.`,
		Example: `  kubectl slurm drain gpu-3 --reason='broken fan'
  kubectl slurm drain 'gpu-[0-3],cpu-7' --reason='new firmware' --dry-run`,
	}, func(command *cobra.Command) {
		command.Flags().StringVar(&reason, "reason", "", "why, for everybody who finds the nodes drained")
	}, func(ctx context.Context, connected *cluster, names []string, cluster []nodes.Node) (drain.Result, error) {
		user, err := connected.client.User(ctx)
		if err := connected.rights.Optional(ignoreNotFound(err)); err != nil {
			return drain.Result{}, err
		}
		text, err := drain.Reason(reason, user)
		if err != nil {
			return drain.Result{}, err
		}
		return drain.Drain(names, cluster, text, session.now())
	})
}

func undrainCommand(session *session) *cobra.Command {
	return session.drainingCommand(&cobra.Command{
		Use:   "undrain HOSTLIST",
		Short: "Open Slurm nodes to jobs again",
		Long: `Lifts drains of users and of Slurm itself, and returns nodes that are down or failed to service. It refuses to lift
drains of the operator, which ends them itself when their cause is gone, and says how to remove the cause.`,
		Example: `  kubectl slurm undrain gpu-3
  kubectl slurm undrain 'gpu-[0-3]' --dry-run`,
	}, func(*cobra.Command) {
	}, func(_ context.Context, _ *cluster, names []string, cluster []nodes.Node) (drain.Result, error) {
		return drain.Undrain(names, cluster)
	})
}

// drainingCommand completes a command that drains or undrains nodes, as decide says.
func (s *session) drainingCommand(
	command *cobra.Command, addFlags func(*cobra.Command),
	decide func(context.Context, *cluster, []string, []nodes.Node) (drain.Result, error),
) *cobra.Command {
	flags := &outputFlags{}
	var dryRun bool
	command.Args = cobra.ExactArgs(1)
	command.ValidArgsFunction = s.complete(s.nodeNames)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		ctx := command.Context()
		names, err := expand(arguments)
		if err != nil {
			return err
		}
		connected, err := s.connectSlurm(ctx)
		if err != nil {
			return err
		}
		input, err := connected.nodes(ctx)
		if err != nil {
			return err
		}
		if connected.run == nil {
			return connected.notAsked
		}
		result, err := decide(ctx, connected, names, nodes.Join(input))
		if err != nil {
			return err
		}
		result.DryRun = dryRun
		for _, kept := range [][]drain.Kept{result.Kept, result.Warnings, result.Refused} {
			for i := range kept {
				kept[i].Why = s.asCalled(kept[i].Why)
			}
		}
		if words := result.Command(); words != nil && !dryRun {
			if _, err := connected.run(ctx, words...); err != nil {
				return err
			}
		}
		err = flags.show(command, func() (any, func(*output.Page), error) { return result, result.Draw, nil })
		if err == nil && len(result.Refused) > 0 {
			return ExitCode(1)
		}
		return err
	}
	addFlags(command)
	flags.addFormat(command)
	command.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be changed")
	return command
}
