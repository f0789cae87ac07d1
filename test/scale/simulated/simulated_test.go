//go:build scale

package simulated

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slurm-operator/slurm-operator/test/cluster/audit"
	"github.com/slurm-operator/slurm-operator/test/cluster/process"
)

func TestStartRemovesLeftoversAndLeavesNone(t *testing.T) {
	group, err := processes()
	must(t, "finding the cluster's directory", err)
	must(t, "leaving a process behind", group.Start(process.Spec{
		Name: "left-over", Path: "/bin/sleep", Args: []string{"300"},
	}))
	t.Run("cluster", func(t *testing.T) {
		Start(t, Options{Nodes: 2})
		if group.Running("left-over") {
			t.Error("the daemon of an earlier cluster still runs")
		}
	})
	left, err := group.Marked()
	must(t, "listing processes", err)
	if len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestWritesNameTheUser(t *testing.T) {
	cluster := Start(t, Options{Nodes: 2})
	client, err := kubernetes.NewForConfig(cluster.ConfigFor(t, "operator"))
	must(t, "creating a client", err)
	started := time.Now()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "written"}}
	_, err = client.CoreV1().Secrets(corev1.NamespaceDefault).Create(t.Context(), secret, metav1.CreateOptions{})
	must(t, "writing", err)

	writes := cluster.Writes(t, started)
	if !slices.ContainsFunc(writes, func(request audit.Request) bool {
		return request.User == "operator" && request.Verb == "create" && request.Resource == "secrets" &&
			request.Name == "written"
	}) {
		t.Errorf("the write is not among %v", writes)
	}
}
