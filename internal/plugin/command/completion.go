package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
)

// completionTimeout is how long a completion may take; a slow one is worse than none.
const completionTimeout = 5 * time.Second

// names returns the names that can complete an argument.
type names func(ctx context.Context, client *kube.Client, namespace string) ([]string, error)

// complete returns the completion of the first argument, or of a flag.
func (s *session) complete(sources ...names) cobra.CompletionFunc {
	return func(command *cobra.Command, arguments []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(arguments) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
		defer cancel()
		client, namespace, err := s.connect(false)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var all []cobra.Completion
		for _, source := range sources {
			found, err := source(ctx, client, namespace)
			if err != nil {
				continue // such as a missing right; the others may do
			}
			all = append(all, found...)
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// addCompletions adds the completion of flags that all commands have.
func (s *session) addCompletions(root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("controller", s.complete(s.clusterNames))
}

// clusterNames returns the names of Slurm clusters.
func (s *session) clusterNames(ctx context.Context, client *kube.Client, namespace string) ([]string, error) {
	return client.Names(ctx, kube.Controllers, namespace)
}

// nodeSetNames returns the names of NodeSets.
func (s *session) nodeSetNames(ctx context.Context, client *kube.Client, namespace string) ([]string, error) {
	return client.Names(ctx, kube.NodeSets, namespace)
}

// nodeNames returns the names of Slurm nodes: those of the slurmd pods, which need no exec.
func (s *session) nodeNames(ctx context.Context, client *kube.Client, namespace string) ([]string, error) {
	pods, err := client.Workers(ctx, namespace, "")
	if err != nil {
		return nil, err
	}
	found := make([]string, len(pods))
	for i := range pods {
		found[i] = kube.SlurmNode(&pods[i])
	}
	return found, nil
}

// jobIDs returns the numbers of jobs.
func (s *session) jobIDs(ctx context.Context, client *kube.Client, namespace string) ([]string, error) {
	controller, err := s.findController(ctx, client, namespace)
	if err != nil {
		return nil, err
	}
	run, err := s.slurm(ctx, client, controller)
	if err != nil {
		return nil, err
	}
	jobs, err := run.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]string, len(jobs))
	for i := range jobs {
		found[i] = describe(&jobs[i])
	}
	return found, nil
}

// describe returns a job as a completion with its description.
func describe(job *slurmcli.Job) string {
	return cobra.CompletionWithDesc(job.ID, job.User+" "+job.Name+" "+job.State)
}
