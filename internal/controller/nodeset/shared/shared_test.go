package shared_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/shared"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

func TestSharedObjects(t *testing.T) {
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "slurm"}}
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "gpu"}}
	golden.YAML(t, "shared.yaml", shared.HostsService(controller), shared.DisruptionBudget(set))
	set.Spec.WorkloadDisruptionProtection = new(false)
	if budget := shared.DisruptionBudget(set); budget != nil {
		t.Errorf("a disabled PodDisruptionBudget is built: %v", budget)
	}
}
