//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"testing"

	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// Where releases of the charts are.
var (
	operatorNamespace = kube.Namespace{Name: "slurm-operator"}
	clusterNamespace  = kube.Namespace{Name: "slurm"}
)

// kinds are all CRDs.
var kinds = []string{"accountings", "controllers", "loginsets", "nodesets", "restapis", "tokens"}

// removeEverything leaves nothing of ours in the cluster, whatever was there and in which order it went.
func removeEverything(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var faults []error
	helm := func(namespace kube.Namespace, release string) {
		_, err := namespace.Helm(ctx, "uninstall", release, "--ignore-not-found", "--wait", "--timeout=3m")
		faults = append(faults, err)
	}
	kubectl := func(arguments ...string) {
		_, err := operatorNamespace.Run(ctx, append(arguments, "--ignore-not-found", "--timeout=2m")...)
		faults = append(faults, err)
	}
	helm(clusterNamespace, "slurm")
	kubectl("delete", "namespace", clusterNamespace.Name)
	helm(operatorNamespace, "slurm-operator")
	helm(kube.Namespace{Name: "default"}, "slurm-operator-crds")
	kubectl("delete", "namespace", operatorNamespace.Name)
	for _, kind := range kinds {
		kubectl("delete", "customresourcedefinition", kind+".slinky.slurm.net")
	}
	if err := errors.Join(faults...); err != nil {
		t.Error(err)
	}
}
