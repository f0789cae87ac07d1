package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
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

// While partitions are closed for a costly change, no job starts: a refused Service must not keep them closed.
func TestRefusedServiceDoesNotKeepPartitionsClosed(t *testing.T) {
	for name, isClosed := range map[string]bool{"partitions are closed": true, "partitions are open": false} {
		t.Run(name, func(t *testing.T) {
			var c cluster
			if isClosed {
				c = newClosedCluster(t)
				c.apply()
				c.runs(1) // so the partitions are opened without the change
			} else {
				c = newCluster(t)
				c.promoted.hash = "earlier"
				c.controller.Spec.ConfigurationTrial.Enabled = new(false)
			}
			c.state = &corev1.PersistentVolumeClaim{}
			reconciler := reconcilerWith(t, servicesRefused)
			next := decide(c.scope)
			if next.stage != promote {
				t.Fatalf("stage %d", next.stage)
			}
			if err := reconciler.act(t.Context(), c.scope, &next); !apierrors.IsInvalid(err) {
				t.Errorf("the error is %v", err)
			}
			live := &corev1.ConfigMap{}
			err := reconciler.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "slurm-config"}, live)
			if isClosed != (err == nil) || strings.Contains(live.Data[slurmconf.FileName], "State=DOWN") {
				t.Errorf("%v, configuration %s", err, live.Data[slurmconf.FileName])
			}
		})
	}
}
