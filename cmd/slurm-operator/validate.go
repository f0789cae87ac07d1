package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmuser"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
)

func validateCommand() *cobra.Command {
	options := validation.Options{
		Config: "/etc/slurm-candidate", Scratch: "/trial", Passwd: slurmuser.Passwd, Timeout: time.Minute,
	}
	report := "/dev/termination-log"
	command := &cobra.Command{
		Use:   "validate",
		Short: "Validates a configuration on a throwaway slurmctld (in the Slurm image)",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options.Log = command.OutOrStdout()
			return validation.Run(command.Context(), options).WriteFile(report)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Config, "config", options.Config, "directory with the files to validate")
	flags.StringVar(&options.Scratch, "scratch", options.Scratch, "directory for the files of the validation run")
	flags.DurationVar(&options.Timeout, "timeout", options.Timeout, "how long the validation run may take")
	flags.StringVar(&report, "report", report, "file to write the report to")
	return command
}
