package slurmclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

var errNoAgent = errors.New("no pod of slurmctld runs with an agent that authenticates its reports")

// nodeChanges returns a function that asks the agents next to a Controller's slurmctlds which Slurm nodes have changed.
// They are looked up for each question, because their pods come and go while the session stays. The first that answers
// counts: another one does not know its cursor, and says so.
func (r *Reconciler) nodeChanges(controller *slinkyv1beta1.Controller, key []byte) func(context.Context, string) (
	slurm.NodeChanges, error) {
	return func(ctx context.Context, since string) (slurm.NodeChanges, error) {
		name := naming.Controller(controller.Name)
		statefulSet, err := reference.Object(ctx, r.Client, controller.Namespace, name, &appsv1.StatefulSet{})
		if err != nil {
			return slurm.NodeChanges{}, err
		}
		pods, err := reference.StatefulSetPods(ctx, r.Client, naming.Slurmctld, controller, name, statefulSet)
		if err != nil {
			return slurm.NodeChanges{}, err
		}
		slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
		var failures []error
		for _, pod := range pods {
			if pod.Status.PodIP == "" || pod.Status.Phase != corev1.PodRunning || !podtemplate.AuthenticatesReports(&pod) {
				continue
			}
			changes, err := r.NodeChanges(ctx, pod.Status.PodIP, key, since)
			if err == nil {
				return changes, nil
			}
			failures = append(failures, fmt.Errorf("pod %s: %w", pod.Name, err))
		}
		if len(failures) == 0 {
			return slurm.NodeChanges{}, errNoAgent
		}
		return slurm.NodeChanges{}, errors.Join(failures...)
	}
}
