//go:build e2e

package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// TestRestrictedNamespace installs an operator that may access only one namespace, with all Slurm daemons that need no
// privileges, in namespaces that enforce the restricted Pod Security Standard.
func TestRestrictedNamespace(t *testing.T) {
	removeEverything(t)
	for _, namespace := range []kube.Namespace{operatorNamespace, clusterNamespace} {
		namespace.Apply(t,
			[]byte("{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace.Name+", "+
				"labels: {pod-security.kubernetes.io/enforce: restricted}}}"))
	}
	helmCharts(".").installCRDs(t)
	helmCharts(".").installOperator(t, "--set=namespaces={slurm}")
	clusterNamespace.MustHelm(t, "upgrade", "--install", "slurm", "slurm", "--set=accounting.enabled=true",
		"--set=mariadb.enabled=true",
		"--set=mariadb.image.repository="+*imagePrefix+"/mariadb", "--set=nodesets.worker.enabled=false",
		"--set=loginsets.login.enabled=false")
	becomesReady(t, clusterNamespace, 4*time.Minute, "controller.slinky.slurm.net/slurm", "restapi/slurm",
		"accounting/slurm")
	// An upgrade keeps the generated database password.
	clusterNamespace.MustHelm(t, "upgrade", "slurm", "slurm", "--reuse-values")
	becomesReady(t, clusterNamespace, time.Minute, "accounting/slurm")

	for question, want := range map[[4]string]bool{
		{"slurm-operator", "slurm", "get", "secrets"}:               true,
		{"slurm-operator", "kube-system", "get", "secrets"}:         false,
		{"slurm-operator", "kube-system", "list", "pods"}:           false,
		{"slurm-operator", "slurm", "list", "nodes"}:                true,
		{"slurm-operator-webhook", "slurm", "list", "nodesets"}:     true,
		{"slurm-operator-webhook", "kube-system", "get", "secrets"}: false,
		{"slurm-operator-webhook", "slurm", "get", "secrets"}:       false,
	} {
		account, verb, resource := question[0], question[2], question[3]
		if got := canI(t.Context(), kube.Namespace{Name: question[1]}, account, verb, resource); got != want {
			t.Errorf("%s may %s %s in %s: %t, want %t", account, verb, resource, question[1], got, want)
		}
	}
	removeEverything(t)
}

// canI reports whether a ServiceAccount of the operator may do something in a namespace.
func canI(ctx context.Context, namespace kube.Namespace, account, verb, resource string) bool {
	_, err := namespace.Run(ctx, "auth", "can-i", verb, resource, "--as=system:serviceaccount:slurm-operator:"+account)
	return err == nil
}
