package command

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
)

// A cluster is a Slurm cluster that a command asks.
type cluster struct {
	client     *kube.Client
	controller *slinkyv1beta1.Controller
	rights     kube.Rights
	// run runs Slurm's commands; nil if that is not possible, for which notAsked says why.
	run      slurmcli.Runner
	notAsked error
}

// connectSlurm connects to the cluster of the flags. Without a way to run Slurm's commands, it notes that, and commands
// show what Kubernetes' objects say.
func (s *session) connectSlurm(ctx context.Context) (*cluster, error) {
	client, namespace, err := s.connect(false)
	if err != nil {
		return nil, err
	}
	controller, err := s.findController(ctx, client, namespace)
	if err != nil {
		return nil, err
	}
	connected := &cluster{client: client, controller: controller}
	connected.run, err = s.slurm(ctx, client, controller)
	return connected, connected.optional(err)
}

// optional notes an error of asking Slurm, and returns it only if the user has ended the command.
func (c *cluster) optional(err error) error {
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	default:
		c.run, c.notAsked = nil, err
		return nil
	}
}

// allNotes returns what is not shown, and why.
func (c *cluster) allNotes() []string {
	notes := c.rights.Notes()
	if c.notAsked != nil {
		notes = append(notes, "Slurm was not asked: "+c.notAsked.Error())
	}
	return notes
}

// pods reads the slurmd pods, as far as the user may.
func (c *cluster) pods(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := c.client.Workers(ctx, c.controller.Namespace, c.controller.Name)
	return pods, c.rights.Optional(err)
}

// cordoned returns the cordoned Kubernetes nodes, as far as the user may read them. The API server selects them,
// because all Kubernetes nodes would be megabytes.
func (c *cluster) cordoned(ctx context.Context) (map[string]bool, error) {
	var list corev1.NodeList
	selector := fields.OneTermEqualSelector("spec.unschedulable", "true").String()
	err := c.client.List(ctx, kube.Nodes, "", metav1.ListOptions{FieldSelector: selector}, &list)
	if err := c.rights.Optional(err); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i := range list.Items {
		names[list.Items[i].Name] = true
	}
	return names, nil
}

// nodes reads everything that package nodes joins.
func (c *cluster) nodes(ctx context.Context) (*nodes.Input, error) {
	input := &nodes.Input{}
	var err error
	if input.Pods, err = c.pods(ctx); err != nil {
		return nil, err
	}
	if input.Cordoned, err = c.cordoned(ctx); err != nil {
		return nil, err
	}
	if c.run == nil {
		return input, nil
	}
	input.Slurm, err = c.run.Nodes(ctx)
	if err == nil {
		input.Asked = true
		input.Jobs, err = c.run.Jobs(ctx, slurmcli.OnNodes)
	}
	return input, c.optional(err)
}

// ignoreNotFound returns nil for an object that does not exist.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
