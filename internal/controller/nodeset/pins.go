package nodeset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/observation"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
)

// observePins reads the Kubernetes nodes that ordinals are pinned to.
func (r *Reconciler) observePins(ctx context.Context, scope *scope) error {
	if !scope.set.Spec.PinToNode || observation.IsDaemonSet(scope.set) {
		return nil
	}
	scope.pins = desired.Pins{}
	for shard := range desired.PinShards(lastOrdinal(scope)) {
		configMap, err := reference.Object(ctx, r.Client, scope.set.Namespace,
			naming.NodeSetPins(scope.set.Name, shard), &corev1.ConfigMap{})
		if err != nil {
			return err
		}
		if configMap != nil {
			scope.pins.Add(configMap.Data)
		}
	}
	return nil
}

func lastOrdinal(scope *scope) int {
	last := observation.Replicas(scope.set)
	for i := range scope.snapshot.Pods {
		last = max(last, scope.snapshot.Pods[i].Ordinal)
	}
	return last
}

// writePins stores the Kubernetes nodes of ordinals that are not pinned yet. The pins must survive the pods.
func (r *Reconciler) writePins(ctx context.Context, scope *scope, _ *plan.Plan, _ *outcome) error {
	if scope.pins == nil {
		return nil
	}
	for shard, data := range scope.pins.Missing(scope.pods) {
		configMap := applycorev1.ConfigMap(naming.NodeSetPins(scope.set.Name, shard), scope.set.Namespace).
			WithLabels(naming.Labels(naming.Slurmd, scope.set.Name)).WithData(data)
		if err := r.Children.Apply(ctx, scope.set, configMap, &corev1.ConfigMap{}); err != nil {
			return fmt.Errorf("storing pins: %w", err)
		}
	}
	return nil
}
