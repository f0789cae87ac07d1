//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/repo"
	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// The namespaces of the chart releases.
var (
	operatorNamespace = kube.Namespace{Name: "slurm-operator"}
	clusterNamespace  = kube.Namespace{Name: "slurm"}
)

// helmCharts is a directory with the charts; "." is that of this checkout.
type helmCharts string

// previousCharts returns the charts of the previous commit, or of this checkout if it had none.
func previousCharts(t *testing.T) helmCharts {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	archive := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c",
		"git archive HEAD^ charts | tar --extract --directory="+dir)
	archive.Dir = root
	if out, err := archive.CombinedOutput(); err != nil {
		t.Logf("the previous commit has no charts: %v: %s", err, out)
		return "."
	}
	return helmCharts(filepath.Join(dir, "charts"))
}

// install installs all charts, with additional arguments for the operator's, and waits until Slurm is ready.
func (c helmCharts) install(t *testing.T, arguments ...string) *slurmCluster {
	t.Helper()
	c.installCRDs(t)
	c.installOperator(t, arguments...)
	c.installSlurm(t)
	return &slurmCluster{namespace: clusterNamespace, operator: operatorNamespace}
}

func (c helmCharts) installCRDs(t *testing.T) {
	t.Helper()
	kube.Namespace{Name: "default"}.MustHelm(t, "upgrade", "--install", "slurm-operator-crds",
		c.chart("slurm-operator-crds"))
}

func (c helmCharts) installOperator(t *testing.T, arguments ...string) {
	t.Helper()
	operatorNamespace.MustHelm(t, append([]string{
		"upgrade", "--install", "slurm-operator", c.chart("slurm-operator"), "--create-namespace", "--wait",
		"--timeout=10m",
		"--set=image.repository=" + *imagePrefix + "/slurm-operator", "--set=image.tag=dev",
		"--set=slurmImage.repository=" + *imagePrefix,
	}, arguments...)...)
}

func (c helmCharts) installSlurm(t *testing.T, arguments ...string) {
	t.Helper()
	clusterNamespace.MustHelm(t,
		append([]string{"upgrade", "--install", "slurm", c.chart("slurm"), "--create-namespace"}, arguments...)...)
	becomesReady(t, clusterNamespace, 3*time.Minute, "controller.slinky.slurm.net/slurm", "restapi/slurm",
		"nodeset/worker", "loginset/login")
}

func (c helmCharts) chart(name string) string {
	// Helm looks up a bare name in a chart repository if there is no such directory.
	return string(c) + string(os.PathSeparator) + name
}

// crdPlurals are the plural names of all CRDs.
var crdPlurals = []string{"accountings", "controllers", "loginsets", "nodesets", "restapis", "tokens"}

// removeEverything removes everything of ours from the cluster, whatever state it is in.
func removeEverything(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var faults []error
	helm := func(namespace kube.Namespace, release string) {
		_, err := namespace.Helm(ctx, "uninstall", release, "--ignore-not-found", "--wait", "--timeout=10m")
		faults = append(faults, err)
	}
	kubectl := func(arguments ...string) {
		_, err := operatorNamespace.Run(ctx, append(arguments, "--ignore-not-found", "--timeout=10m")...)
		faults = append(faults, err)
	}
	helm(clusterNamespace, "slurm")
	kubectl("delete", "namespace", clusterNamespace.Name)
	helm(operatorNamespace, "slurm-operator")
	helm(kube.Namespace{Name: "default"}, "slurm-operator-crds")
	kubectl("delete", "namespace", operatorNamespace.Name)
	for _, plural := range crdPlurals {
		kubectl("delete", "customresourcedefinition", plural+".slinky.slurm.net")
	}
	if err := errors.Join(faults...); err != nil {
		t.Error(err)
	}
}
