package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// recordNames annotates NodeSets with their names in Slurm, once these are in force. The annotation survives deletion
// of the Controller and its ConfigMaps, as slurmctld's state does: without it a re-created slurmctld could have other
// partitions than its jobs.
func (r *Reconciler) recordNames(ctx context.Context, scope *scope, plan *plan) error {
	if plan.problem != nil || plan.stage != promote && plan.stage != settled {
		return nil
	}
	for i := range scope.nodeSets {
		set := &scope.nodeSets[i]
		name, changes := clusterconf.NameToRecord(set, plan.candidate.names)
		if !changes {
			continue
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": map[string]string{slinkyv1beta1.AnnotationSlurmName: name}},
		})
		if err != nil {
			return err
		}
		ctx := trace.Because(ctx, "SlurmNameInUse", "the NodeSet keeps the name that its partition and feature have")
		err = r.Client.Patch(ctx, set.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("recording the name of NodeSet %s in Slurm: %w", set.Name, err)
		}
	}
	return nil
}
