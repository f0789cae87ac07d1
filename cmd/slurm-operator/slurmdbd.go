package main

import (
	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmdbd"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func slurmdbdCommand() *cobra.Command {
	var options slurmdbd.Options
	command := &cobra.Command{
		Use:   "slurmdbd [--listen ADDRESS] COMMAND...",
		Short: "Runs slurmdbd and reports its database errors (in the Slurm image)",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			options.Command, options.Log = args, command.ErrOrStderr()
			return slurmdbd.Run(command.Context(), options)
		},
	}
	flags := command.Flags()
	flags.SetInterspersed(false) // flags after the command belong to it
	flags.StringVar(&options.Listen, "listen", ":6816", "where the report is served")
	flags.StringVar(&options.Key, "key", slurmconf.JWTKeyFile, "JWT key that clients of the report must have")
	flags.DurationVar(&options.ExitTimeout, "exit-timeout", 0, "kill slurmdbd this long after SIGTERM, or 0 for never")
	return command
}
