package kube

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/repo"
)

// Helm runs helm in the repository's charts directory and returns its output.
func (n Namespace) Helm(ctx context.Context, arguments ...string) (string, error) {
	return n.helmWith(ctx, nil, arguments...)
}

func (n Namespace) helmWith(ctx context.Context, input []byte, arguments ...string) (string, error) {
	root, err := repo.Root()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "helm", append([]string{"--namespace", n.Name}, arguments...)...)
	cmd.Dir = filepath.Join(root, "charts")
	cmd.Stdin = bytes.NewReader(input)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w: %s", strings.Join(arguments, " "), err,
			strings.TrimSpace(problems.String()))
	}
	return out.String(), nil
}

// MustHelm runs helm and fails the test when it fails.
func (n Namespace) MustHelm(t *testing.T, arguments ...string) {
	t.Helper()
	if _, err := n.Helm(t.Context(), arguments...); err != nil {
		t.Fatal(err)
	}
}

// InstallCluster installs the slurm chart with the values of a template.
func (n Namespace) InstallCluster(t *testing.T, files fs.FS, name string, settings any) {
	t.Helper()
	if _, err := n.helmWith(t.Context(), executeTemplates(t, files, name, settings), "install", "slurm", "./slurm",
		"--values=-"); err != nil {
		t.Fatal(err)
	}
}
