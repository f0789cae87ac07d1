package main

import (
	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/inpod/terminator"
)

func terminateCommand() *cobra.Command {
	var options terminator.Options
	command := &cobra.Command{
		Use:   "terminate-tls",
		Short: "Terminates TLS in front of slurmrestd (in its pod)",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options.Log = command.ErrOrStderr()
			return terminator.Run(command.Context(), options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Listen, "listen", ":6820", "where clients connect")
	flags.StringVar(&options.Socket, "socket", "/run/slurmrestd/slurmrestd.socket",
		"the Unix socket that slurmrestd listens on")
	flags.StringVar(&options.Certificates, "certificate-directory", "/etc/slurmrestd-tls",
		"directory with tls.crt and tls.key, which are read again when they change")
	flags.BoolVar(&options.PlainHTTP, "plain-http", false, "also accept requests without TLS")
	return command
}
