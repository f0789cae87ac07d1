package nodeset

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// observeGres finds the GRES of the set that the running slurmctld does not know yet. New pods wait for it: a node that registers
// with such a GRES gets a record without it, and neither a reconfigure nor an update of the node mends that. An external
// slurmctld has a configuration that nobody sees from here.
func (r *Reconciler) observeGres(ctx context.Context, scope *scope) error {
	if scope.template == nil || scope.controller.Spec.External {
		return nil
	}
	node, err := nodeconf.Of(scope.set)
	if err != nil || len(node.Gres) == 0 {
		return nil //nolint:nilerr // there is no template then
	}
	configuration, err := reference.Object(ctx, r.Client, scope.set.Namespace, naming.Configuration(scope.controller.Name), &corev1.ConfigMap{})
	if err != nil {
		return err
	}
	conf := ""
	if configuration != nil {
		conf = configuration.Data[slurmconf.FileName]
	}
	scope.awaited = unknownGres(node.GresTypes(), conf, scope.controller.Status.AppliedConfigHash)
	return nil
}

// unknownGres are those of some types of GRES that slurmctld does not know, given what it is to run with and the hash of what it
// runs with.
func unknownGres(types []string, conf, running string) []string {
	document, err := slurmconf.Parse(conf)
	parameters, _ := document.Get("SlurmctldParameters")
	if err != nil || running == "" || slurmconf.HashOf(parameters) != running {
		return types
	}
	known, _ := document.Get("GresTypes")
	return slices.DeleteFunc(slices.Clone(types), func(gres string) bool { return slices.Contains(strings.Split(known, ","), gres) })
}
