package main

import (
	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/inpod/daemon"
)

func runCommand() *cobra.Command {
	var state string
	command := &cobra.Command{
		Use:   "run COMMAND...",
		Short: "Runs a daemon and ensures that it terminates on SIGTERM (in the Slurm image)",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if state != "" {
				if err := daemon.HasState(state); err != nil {
					return err
				}
			}
			return daemon.Run(command.Context(), args, command.ErrOrStderr())
		},
	}
	command.Flags().
		StringVar(&state, "expect-state", "", "do not start slurmctld unless this directory holds its saved state")
	command.Flags().SetInterspersed(false) // flags after the command belong to it
	return command
}
