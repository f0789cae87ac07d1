package main

import (
	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/operator"
)

func releaseCommand() *cobra.Command {
	var namespaces []string
	command := &cobra.Command{
		Use:   "release",
		Short: "Removes the finalizers of NodeSets after the operator was uninstalled",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := connect()
			if err != nil {
				return err
			}
			return operator.Release(command.Context(), config, namespaces, command.OutOrStdout())
		},
	}
	command.Flags().
		StringSliceVar(&namespaces, "namespaces", nil,
			"the namespaces of the NodeSets, separated by commas; all by default")
	return command
}
