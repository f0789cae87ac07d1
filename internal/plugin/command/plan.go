package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/config"
	"github.com/slurm-operator/slurm-operator/internal/plugin/forecast"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
)

func planCommand(session *session) *cobra.Command {
	flags := &outputFlags{}
	var file, nodeSet string
	command := &cobra.Command{
		Use:   "plan [--filename FILE]",
		Short: "Show what the operator does next with the pods of NodeSets, or would do after a change",
		Long: `Shows the next steps of the operator for the pods of NodeSets: which Slurm nodes it drains, which pods it
creates, deletes or replaces, and which jobs it waits for; and which changes of slurm.conf and of slurmctld's pod wait
because they would cost running jobs. With --filename, it shows the steps after the NodeSets and the Controller in the
file were applied; nothing is applied. It is the operator's own planner, fed with what you may read.`,
		Example: `  kubectl slurm plan
  kubectl slurm plan --nodeset=gpu
  kubectl get nodeset gpu --output=yaml | sed 's/replicas: .*/replicas: 2/' | kubectl slurm plan --filename=-`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.show(command, func() (any, func(*output.Page), error) {
				result, err := session.plan(command, file, nodeSet)
				if err != nil {
					return nil, nil, err
				}
				return result, result.Draw, nil
			})
		},
	}
	flags.addFormat(command)
	flags.addWatch(command)
	command.Flags().StringVarP(&file, "filename", "f", "",
		"file with changed NodeSets, or a changed Controller; - for standard input")
	command.Flags().StringVar(&nodeSet, "nodeset", "", "show only this NodeSet")
	_ = command.RegisterFlagCompletionFunc("nodeset", session.complete(session.nodeSetNames))
	return command
}

func (s *session) plan(command *cobra.Command, file, only string) (*forecast.Result, error) {
	ctx := command.Context()
	connected, err := s.connectSlurm(ctx)
	if err != nil {
		return nil, err
	}
	controller := connected.controller
	objects, err := connected.client.Clusters(ctx, controller.Namespace, false)
	if err != nil {
		return nil, err
	}
	input, err := s.forecastInput(ctx, connected, objects)
	if err != nil {
		return nil, err
	}
	changed, err := connected.changedObjects(command, file)
	if err != nil {
		return nil, err
	}
	result := &forecast.Result{Controller: controller.Name, NodeSets: []forecast.NodeSet{}}
	if result.Waits, err = connected.waits(ctx, objects, changed); err != nil {
		return nil, err
	}
	if result.Waits != nil && input.Asked {
		result.Waits.Count(input.Jobs)
	}
	result.Notes = connected.allNotes()
	changes := nodeSetsOf(changed)
	add := func(before, after *slinkyv1beta1.NodeSet) error {
		if only != "" && after.Name != only || file != "" && before == after {
			return nil
		}
		next, err := forecast.Of(input, before, after)
		result.NodeSets = append(result.NodeSets, next)
		return err
	}
	for i := range objects.NodeSets {
		before := &objects.NodeSets[i]
		if before.Spec.ControllerRef.Name != controller.Name {
			continue
		}
		after := before
		if changed := changes[before.Name]; changed != nil {
			changed.Status, changed.UID = before.Status, before.UID
			after = changed
			delete(changes, before.Name)
		}
		if err := add(before, after); err != nil {
			return nil, err
		}
	}
	for _, after := range changes {
		if err := add(nil, after); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// forecastInput reads what the planner needs.
func (s *session) forecastInput(
	ctx context.Context, connected *cluster, objects *kube.Objects,
) (*forecast.Input, error) {
	input := &forecast.Input{Now: s.now(), Controller: connected.controller, Started: forecast.Since(s.now())}
	for i := range objects.Accountings {
		if reference := connected.controller.Spec.AccountingRef; reference != nil &&
			objects.Accountings[i].Name == reference.Name {
			input.Accounting = &objects.Accountings[i]
		}
	}
	workers, err := connected.client.Workers(ctx, connected.controller.Namespace, connected.controller.Name)
	if err != nil {
		return nil, err // without them, every pod would seem to be missing
	}
	input.Pods = workers
	var nodes corev1.NodeList
	err = connected.client.List(ctx, kube.Nodes, "", metav1.ListOptions{}, &nodes)
	if err := connected.rights.Optional(err); err != nil {
		return nil, err
	}
	input.KubernetesNodes = nodes.Items
	if started, err := connected.started(ctx); err == nil && !started.IsZero() {
		input.Started = started.Time
	}
	if connected.run == nil {
		return input, nil
	}
	input.SlurmNodes, err = connected.run.Nodes(ctx)
	if err == nil {
		input.Jobs, err = connected.run.Jobs(ctx)
		input.Asked = err == nil
	}
	return input, connected.optional(err)
}

// started returns when the active slurmctld started.
func (c *cluster) started(ctx context.Context) (metav1.Time, error) {
	var pods corev1.PodList
	selector := labels.SelectorFromSet(naming.Selector(naming.Slurmctld, c.controller.Name)).String()
	err := c.client.List(ctx, kube.Pods, c.controller.Namespace, metav1.ListOptions{LabelSelector: selector}, &pods)
	for i := range pods.Items {
		for _, container := range pods.Items[i].Status.ContainerStatuses {
			if running := container.State.Running; running != nil && container.Name == string(naming.Slurmctld) &&
				kube.IsReady(&pods.Items[i]) {
				return running.StartedAt, err
			}
		}
	}
	return metav1.Time{}, err
}

// waits returns what a change makes wait, or, if nothing changes, what waits now. It is nil if nothing does.
func (c *cluster) waits(ctx context.Context, objects *kube.Objects, changed []any) (*config.Waits, error) {
	before, err := configurationOf(ctx, c.client, c.controller, objects)
	if err != nil {
		return nil, c.rights.Optional(err)
	}
	if len(changed) == 0 {
		return config.Waiting(before), nil
	}
	after, err := before.With(changed)
	if err != nil {
		return nil, err
	}
	return config.WaitsOf(before, after), nil
}

// changedObjects reads the NodeSets of a file, and the Controller, as the API server would store them.
func (c *cluster) changedObjects(command *cobra.Command, file string) ([]any, error) {
	if file == "" {
		return nil, nil
	}
	objects, err := readObjects(command, file)
	if err != nil {
		return nil, err
	}
	var changed []any
	for _, object := range objects {
		if kind := object.GetKind(); kind != "NodeSet" && kind != "Controller" {
			continue
		}
		object.SetNamespace(c.controller.Namespace)
		check := &config.Check{}
		tryOn(command.Context(), c.client, checked[object.GetKind()], object, check)
		if len(check.Refusals) > 0 {
			return nil, errors.New(check.Refusals[0].Object + " is refused: " + check.Refusals[0].Message)
		}
		typed, err := typed(object)
		if err != nil {
			return nil, err
		}
		switch object := typed.(type) {
		case *slinkyv1beta1.NodeSet:
			if object.Spec.ControllerRef.Name != c.controller.Name {
				continue
			}
		case *slinkyv1beta1.Controller:
			if object.Name != c.controller.Name {
				continue
			}
		}
		changed = append(changed, typed)
	}
	if len(changed) == 0 {
		return nil, fmt.Errorf("%s has neither the Controller %s nor a NodeSet of it", file, c.controller.Name)
	}
	return changed, nil
}

// nodeSetsOf returns the NodeSets among objects, by name.
func nodeSetsOf(objects []any) map[string]*slinkyv1beta1.NodeSet {
	sets := map[string]*slinkyv1beta1.NodeSet{}
	for _, object := range objects {
		if set, is := object.(*slinkyv1beta1.NodeSet); is {
			sets[set.Name] = set
		}
	}
	return sets
}
