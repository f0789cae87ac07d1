package build

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
)

// The manifests of a release, for installations without Helm.
const (
	crdsFile    = "crds.yaml"
	installFile = "install.yaml"
)

// kubeVersion is the Kubernetes version that the manifest is rendered for. The pinned Helm knows none.
const kubeVersion = "1.36"

// namespace is where the install manifest puts the operator. The operator runs under the strictest Pod Security
// Standard.
const namespace = `apiVersion: v1
kind: Namespace
metadata:
  name: slurm-operator
  labels:
    pod-security.kubernetes.io/enforce: restricted
`

// manifests writes the CRDs, and the operator without them: deleting CRDs deletes all clusters with their jobs, which
// must not happen to a user who deletes what installed the operator.
func (b *build) manifests(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(b.Source.Dir, "config", "crd", "bases", "*.yaml"))
	if err != nil {
		return err
	}
	var definitions bytes.Buffer
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		definitions.WriteString("---\n")
		definitions.Write(content)
	}
	if err := os.WriteFile(b.path(crdsFile), definitions.Bytes(), 0o644); err != nil {
		return err
	}
	// A hook of the chart runs after Helm has uninstalled it: kubectl would run it now.
	operator, err := b.helm(ctx, "template", "slurm-operator", b.path("slurm-operator-"+b.release.ChartVersion()+".tgz"),
		"--namespace", "slurm-operator", "--no-hooks", "--kube-version", kubeVersion)
	if err != nil {
		return err
	}
	return os.WriteFile(b.path(installFile), append([]byte(namespace), operator...), 0o644)
}
