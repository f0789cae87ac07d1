package command

import (
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/status"
)

func statusCommand(session *session) *cobra.Command {
	flags := &outputFlags{}
	command := &cobra.Command{
		Use:   "status [CLUSTER]",
		Short: "Show how Slurm clusters are",
		Long: `Shows each Slurm cluster of the namespace as a tree: the Controller, and its Accounting, RestApis, LoginSets and
NodeSets. Problems come with the operator's reason and message; objects without one are grouped if they are many.

It reads the custom resources only, with at most 5 requests whatever the size of the clusters. With --output=wide it
also lists every object, the slurmctld pods and the tokens with their expiry.`,
		Example: `  kubectl slurm status
  kubectl slurm status --all-namespaces
  kubectl slurm status slurm --watch`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: session.complete(session.clusterNames),
		RunE: func(command *cobra.Command, arguments []string) error {
			return session.showStatus(command, flags, session.clusterIn(arguments))
		},
	}
	flags.addFormat(command)
	flags.addAllNamespaces(command)
	flags.addWatch(command)
	return command
}

// clusterIn returns the name of the Controller in the arguments, or that of the flag.
func (s *session) clusterIn(arguments []string) string {
	if len(arguments) > 0 {
		return arguments[0]
	}
	return s.controller
}

func (s *session) showStatus(command *cobra.Command, flags *outputFlags, name string) error {
	client, namespace, err := s.connect(flags.allNamespaces)
	if err != nil {
		return err
	}
	return flags.show(command, func() (any, func(*output.Page), error) {
		ctx, wide := command.Context(), flags.format == output.Wide
		objects, err := client.Clusters(ctx, namespace, wide)
		if err != nil {
			return nil, nil, missingCRDs(err)
		}
		var slurmctlds corev1.PodList
		if wide {
			selector := labels.SelectorFromSet(naming.DaemonSelector(naming.Slurmctld)).String()
			err := client.List(ctx, kube.Pods, namespace, metav1.ListOptions{LabelSelector: selector}, &slurmctlds)
			if err := objects.Rights.Optional(err); err != nil {
				return nil, nil, err
			}
		}
		now := s.now()
		result := status.Build(objects, slurmctlds.Items, name, now)
		switch {
		case len(result.Clusters) > 0 || len(result.Notes) > 0:
		case name != "":
			return nil, nil, fmt.Errorf("%w; see kubectl slurm status --all-namespaces", notFound(name, namespace))
		default:
			return nil, nil, noController(namespace)
		}
		return result, func(page *output.Page) { result.Draw(page, now) }, nil
	})
}

func notFound(name, namespace string) error {
	if namespace == "" {
		return fmt.Errorf("there is no Controller %s in any namespace", name)
	}
	return fmt.Errorf("there is no Controller %s in the namespace %s", name, namespace)
}
