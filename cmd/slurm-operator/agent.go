package main

import (
	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
)

func agentCommand() *cobra.Command {
	options := agent.Options{
		Config:    "/etc/slurm",
		PIDFile:   "/run/slurmctld/slurmctld.pid",
		Listen:    ":6816",
		Slurmctld: "localhost:6817", // with IPv4 or IPv6
	}
	command := &cobra.Command{
		Use:   "agent",
		Short: "Reconfigures slurmctld when its files change (in the Slurm image)",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return agent.Run(command.Context(), options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Config, "config", options.Config, "directory with slurmctld's files")
	flags.StringVar(&options.PIDFile, "pid-file", options.PIDFile,
		"file that slurmctld writes when it starts, to notice that soon")
	flags.StringVar(&options.Listen, "listen", options.Listen, "where /state, /livez and /readyz are served")
	flags.StringVar(&options.Slurmctld, "slurmctld", options.Slurmctld, "where slurmctld listens")
	return command
}
