package command

import (
	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
)

// passThrough runs a command in the pod of slurmctld, with the streams of the plugin.
func (s *session) passThrough(command *cobra.Command, words []string) error {
	client, namespace, err := s.connect(false)
	if err != nil {
		return err
	}
	controller, err := s.findController(command.Context(), client, namespace)
	if err != nil {
		return err
	}
	container, err := slurmcli.Find(command.Context(), client, controller)
	if err != nil {
		return err
	}
	return client.Exec(command.Context(), container, kube.Streams{
		Out: command.OutOrStdout(), Err: command.ErrOrStderr(),
	}, words...)
}
