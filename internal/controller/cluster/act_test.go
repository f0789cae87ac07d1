package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slurm-operator/slurm-operator/internal/child"
)

// A key that is deleted between observe and act is lost, and not generated again: daemons with different keys refuse
// each other.
func TestKeyDeletedDuringReconcileIsNotGenerated(t *testing.T) {
	for name, test := range map[string]struct {
		read bool // observe has read the keys
		want int
	}{
		"missing": {want: 2}, "deleted": {read: true},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			if !test.read {
				scope.slurmKey, scope.jwtKey = nil, nil
			}
			cluster := fake.NewClientBuilder().Build()
			reconciler := &Reconciler{Client: cluster, Children: child.NewApplier(cluster)}
			if err := reconciler.generateKeys(t.Context(), scope); err != nil {
				t.Fatal(err)
			}
			secrets := &corev1.SecretList{}
			if err := cluster.List(t.Context(), secrets); err != nil {
				t.Fatal(err)
			}
			if len(secrets.Items) != test.want {
				t.Errorf("%d Secrets were created, want %d", len(secrets.Items), test.want)
			}
		})
	}
}
