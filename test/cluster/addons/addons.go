// Package addons installs the add-ons of a test cluster: DNS, volumes and a RuntimeClass.
package addons

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os/exec"
	"text/template"
)

//go:embed *.yaml
var manifests embed.FS

// Settings are the values for the manifest templates.
type Settings struct {
	// DNSAddress is the cluster address of the DNS Service.
	DNSAddress string
	// LocalPathDir is the directory for a node's local volumes.
	LocalPathDir string
	// SharedDir is the directory for volumes that all nodes share.
	SharedDir string
	// WritableCgroups is the runtime handler that mounts cgroups writable, and its RuntimeClass.
	WritableCgroups string
}

// The images in the manifests.
const (
	CoreDNSImage              = "devcluster/coredns:1"
	LocalPathProvisionerImage = "devcluster/local-path-provisioner:1"
	BusyboxImage              = "devcluster/busybox:1"
)

// Apply applies all manifests with the given kubectl.
func Apply(ctx context.Context, kubectl, kubeconfig string, settings Settings) error {
	all, err := template.ParseFS(manifests, "*.yaml")
	if err != nil {
		return err
	}
	var rendered bytes.Buffer
	for _, manifest := range all.Templates() {
		if err := manifest.Execute(&rendered, settings); err != nil {
			return err
		}
		rendered.WriteString("\n---\n")
	}
	cmd := exec.CommandContext(ctx, kubectl, "--kubeconfig", kubeconfig, "apply", "--server-side", "-f", "-")
	cmd.Stdin = &rendered
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("applying add-ons: %w\n%s", err, out)
	}
	return nil
}
