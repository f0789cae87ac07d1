//go:build e2e

package e2e_test

import (
	"os"
	"testing"

	"github.com/slurm-operator/slurm-operator/test/cluster"
)

// openCluster returns the cluster under test when it is one of our own.
func openCluster() (own *cluster.Cluster, ours bool) {
	own, err := cluster.Open()
	return own, err == nil && own.Plane.Kubeconfig() == os.Getenv("KUBECONFIG")
}

// ownCluster returns the cluster under test if its nodes and their network can be changed. On any other cluster the
// test is skipped.
func ownCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	own, ours := openCluster()
	if !ours {
		t.Skip("this test changes Kubernetes nodes or their network: run it on the cluster of make cluster-up")
	}
	return own
}
