package command

import (
	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/plugin/jobs"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
)

func jobsCommand(session *session) *cobra.Command {
	flags := &outputFlags{}
	var node, user, partition, states string
	command := &cobra.Command{
		Use:   "jobs",
		Short: "Show jobs with their pods and Kubernetes nodes",
		Long: `Shows the jobs that squeue lists, running ones first; with --output=wide also the Kubernetes nodes that they run on.
It asks Slurm, which needs the right to create pods/exec.`,
		Example: `  kubectl slurm jobs
  kubectl slurm jobs --node=gpu-3
  kubectl slurm jobs --state=pending --slurm-user=alice`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var filter []string
			for _, option := range [][2]string{
				{"--nodelist=", node}, {"--user=", user}, {"--partition=", partition}, {"--states=", states},
			} {
				if option[1] != "" {
					filter = append(filter, option[0]+option[1])
				}
			}
			return session.showJobs(command, flags, filter)
		},
	}
	flags.addFormat(command)
	flags.addWatch(command)
	command.Flags().StringVar(&node, "node", "", "show only the jobs on these Slurm nodes, a hostlist expression")
	command.Flags().StringVar(&user, "slurm-user", "", "show only the jobs of this user of Slurm")
	command.Flags().StringVar(&partition, "partition", "", "show only the jobs of this partition")
	command.Flags().StringVar(&states, "state", "", "show only the jobs in these states, such as pending, or all")
	_ = command.RegisterFlagCompletionFunc("node", session.complete(session.nodeNames))
	return command
}

func (s *session) showJobs(command *cobra.Command, flags *outputFlags, filter []string) error {
	return flags.show(command, func() (any, func(*output.Page), error) {
		connected, err := s.connectSlurm(command.Context())
		if err != nil {
			return nil, nil, err
		}
		if connected.run == nil {
			return nil, nil, connected.notAsked
		}
		list, err := connected.run.Jobs(command.Context(), filter...)
		if err != nil {
			return nil, nil, err
		}
		pods, err := connected.pods(command.Context())
		if err != nil {
			return nil, nil, err
		}
		result := &jobs.Result{Jobs: jobs.Join(list, pods), Notes: connected.allNotes()}
		return result, func(page *output.Page) { result.Draw(page, s.now()) }, nil
	})
}
