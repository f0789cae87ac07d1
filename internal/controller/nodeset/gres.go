package nodeset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// observeGres finds what the running slurmctld does not know of the NodeSet yet: GRES, and a change of its partition
// that the status does not report as applied already. The configuration of an external slurmctld is not visible.
func (r *Reconciler) observeGres(ctx context.Context, scope *scope) error {
	if scope.template == nil || scope.controller.Spec.External {
		return nil
	}
	node, err := nodeconf.Of(scope.set)
	if err != nil {
		return nil //nolint:nilerr // the template was refused for that reason
	}
	checksPartition := !isDone(scope.set)
	if len(node.Gres) == 0 && !checksPartition {
		return nil
	}
	configuration, err := reference.Object(ctx, r.Client, scope.set.Namespace,
		naming.Configuration(scope.controller.Name), &corev1.ConfigMap{})
	if err != nil {
		return err
	}
	conf, hash := "", scope.controller.Status.AppliedConfigHash
	if configuration != nil {
		conf = configuration.Data[slurmconf.FileName]
	}
	scope.awaited = desired.UnknownGres(node.GresTypes(), conf, hash)
	if checksPartition {
		scope.partition = desired.Partition(scope.set, scope.controller.Spec.ExtraConf, conf, hash)
	}
	return nil
}

// isDone reports whether the status says that the NodeSet matches its present spec.
func isDone(set *slinkyv1beta1.NodeSet) bool {
	ready := meta.FindStatusCondition(set.Status.Conditions, slinkyv1beta1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == set.Generation
}

// judgePartition is about a change of the partition that is not complete.
func judgePartition(scope *scope) status.Verdict {
	const reason = slinkyv1beta1.ReasonControllerNotReady
	set, controller := scope.set, scope.set.Spec.ControllerRef.Name
	switch {
	case scope.partition == desired.PartitionLeaves:
		return status.Progressing(reason, "the partition of the NodeSet has been removed: it accepts no new jobs, and "+
			"stays until its last job has ended; cancel the jobs to remove it now (scancel --partition=%s)",
			desired.SlurmName(set))
	case !set.Spec.Partition.Enabled:
		return status.Progressing(reason, "the partition of the NodeSet has been removed, and slurmctld does not run "+
			"without it yet; see the conditions of Controller %s", controller)
	}
	return status.Progressing(reason,
		"slurmctld does not run with the partition of the NodeSet yet; see the conditions of Controller %s", controller)
}
