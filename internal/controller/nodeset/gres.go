package nodeset

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// observeGres finds the GRES of the NodeSet that the running slurmctld does not know yet. The configuration of an
// external slurmctld is not visible.
func (r *Reconciler) observeGres(ctx context.Context, scope *scope) error {
	if scope.template == nil || scope.controller.Spec.External {
		return nil
	}
	node, err := nodeconf.Of(scope.set)
	if err != nil || len(node.Gres) == 0 {
		return nil //nolint:nilerr // the template was refused for that reason
	}
	configuration, err := reference.Object(ctx, r.Client, scope.set.Namespace,
		naming.Configuration(scope.controller.Name), &corev1.ConfigMap{})
	if err != nil {
		return err
	}
	conf := ""
	if configuration != nil {
		conf = configuration.Data[slurmconf.FileName]
	}
	scope.awaited = desired.UnknownGres(node.GresTypes(), conf, scope.controller.Status.AppliedConfigHash)
	return nil
}
