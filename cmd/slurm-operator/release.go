package main

import (
	"fmt"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/slurm-operator/slurm-operator/internal/operator"
)

func releaseCommand() *cobra.Command {
	var namespaces []string
	command := &cobra.Command{
		Use:   "release",
		Short: "Lets NodeSets be deleted without the operator, after it was uninstalled",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("finding the API server: %w", err)
			}
			return operator.Release(command.Context(), config, namespaces, command.OutOrStdout())
		},
	}
	command.Flags().StringSliceVar(&namespaces, "namespaces", nil, "the namespaces of the NodeSets, separated by commas; all by default")
	return command
}
