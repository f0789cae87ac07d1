package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/plugin/doctor"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/timeline"
)

func eventsCommand(session *session) *cobra.Command {
	flags := &outputFlags{}
	var object string
	var warnings bool
	command := &cobra.Command{
		Use:   "events",
		Short: "Show the events of a cluster's objects in their order",
		Long: `Shows the events of a cluster's custom resources and pods, the oldest first: what the operator decided and why, and
what Kubernetes did. Kubernetes keeps events for an hour by default.`,
		Example: `  kubectl slurm events --watch
  kubectl slurm events --for=nodeset/gpu --warnings`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.show(command, func() (any, func(*output.Page), error) {
				result, err := session.events(command, object, warnings)
				if err != nil {
					return nil, nil, err
				}
				return result, func(page *output.Page) { result.Draw(page, session.now()) }, nil
			})
		},
	}
	flags.addFormat(command)
	flags.addWatch(command)
	command.Flags().StringVar(&object, "for", "", "show only the events of this object, such as nodeset/gpu")
	command.Flags().BoolVar(&warnings, "warnings", false, "show only warnings")
	return command
}

func (s *session) events(command *cobra.Command, only string, warnings bool) (*timeline.Result, error) {
	ctx := command.Context()
	client, namespace, err := s.connect(false)
	if err != nil {
		return nil, err
	}
	controller, err := s.findController(ctx, client, namespace)
	if err != nil {
		return nil, err
	}
	objects, err := client.Clusters(ctx, namespace, true)
	if err != nil {
		return nil, err
	}
	result := &timeline.Result{}
	known := map[string]bool{}
	for _, name := range doctor.Names(doctor.Select(objects, controller.Name)) {
		known[strings.ToLower(name)] = true
	}
	pods, err := clusterPods(ctx, client, controller)
	if err := objects.Rights.Optional(err); err != nil {
		return nil, err
	}
	for i := range pods {
		known["pod/"+pods[i].Name] = true
	}
	var all eventsv1.EventList
	if err := client.List(ctx, kube.Events, namespace, metav1.ListOptions{}, &all); err != nil {
		return nil, err
	}
	result.Events = timeline.Of(all.Items, func(reference *corev1.ObjectReference) bool {
		name := strings.ToLower(reference.Kind + "/" + reference.Name)
		return known[name] && (only == "" || name == strings.ToLower(only))
	})
	if warnings {
		result.Events = slices.DeleteFunc(result.Events, func(event timeline.Event) bool {
			return event.Type != corev1.EventTypeWarning
		})
	}
	result.Notes = objects.Rights.Notes()
	return result, nil
}
