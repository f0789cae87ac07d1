package nodeset

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
)

// With spec.pinToNode an ordinal returns to the Kubernetes node that it first ran on. Which one that is has to outlive the pod,
// and with thousands of ordinals does not fit into one object that is written often: it is kept in ConfigMaps, of so many
// ordinals each.
const pinsPerConfigMap = 1000

// observePins reads where ordinals are pinned.
func (r *Reconciler) observePins(ctx context.Context, scope *scope) error {
	if !scope.set.Spec.PinToNode || isDaemonSet(scope.set) {
		return nil
	}
	scope.pins = map[int]string{}
	for shard := 0; shard <= lastOrdinal(scope)/pinsPerConfigMap; shard++ {
		configMap, err := reference.Object(ctx, r.Client, scope.set.Namespace, naming.NodeSetPins(scope.set.Name, shard), &corev1.ConfigMap{})
		if err != nil {
			return err
		}
		if configMap == nil {
			continue
		}
		for key, node := range configMap.Data {
			if ordinal, err := strconv.Atoi(key); err == nil {
				scope.pins[ordinal] = node
			}
		}
	}
	return nil
}

func lastOrdinal(scope *scope) int {
	last := replicas(scope.set)
	for i := range scope.snapshot.Pods {
		last = max(last, scope.snapshot.Pods[i].Ordinal)
	}
	return last
}

// keepPins writes down where ordinals run that were not pinned yet.
func (r *Reconciler) keepPins(ctx context.Context, scope *scope, _ *plan.Plan, _ *outcome) error {
	if scope.pins == nil {
		return nil
	}
	pins, changed := maps.Clone(scope.pins), map[int]bool{}
	for i := range scope.pods {
		ordinal, node := scope.snapshot.Pods[i].Ordinal, scope.pods[i].Spec.NodeName
		if _, pinned := pins[ordinal]; !pinned && node != "" && ordinal >= 0 && scope.pods[i].DeletionTimestamp == nil {
			pins[ordinal] = node
			changed[ordinal/pinsPerConfigMap] = true
		}
	}
	for shard := range maps.Keys(changed) {
		data := map[string]string{}
		for ordinal, node := range pins {
			if ordinal/pinsPerConfigMap == shard {
				data[strconv.Itoa(ordinal)] = node
			}
		}
		configMap := applycorev1.ConfigMap(naming.NodeSetPins(scope.set.Name, shard), scope.set.Namespace).
			WithLabels(naming.Labels(naming.Slurmd, scope.set.Name)).WithData(data)
		if err := r.Children.Apply(ctx, scope.set, configMap, &corev1.ConfigMap{}); err != nil {
			return fmt.Errorf("keeping where pods run: %w", err)
		}
	}
	return nil
}

// pinned is as much of it as the status shows.
func pinned(scope *scope) map[string]string {
	if len(scope.pins) == 0 {
		return nil
	}
	shown := map[string]string{}
	for ordinal, node := range scope.pins {
		if ordinal < slinkyv1beta1.MaxOrdinalToNode {
			shown[strconv.Itoa(ordinal)] = node
		}
	}
	return shown
}
