//go:build integration

package webhook_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/slurm-operator/slurm-operator/hack/repo"
	"github.com/slurm-operator/slurm-operator/test/integration/apiserver"
)

// server is shared by all tests of the package; each has its own namespace and webhook configurations.
var server *apiserver.Server

// root is the root of the repository, and program the operator built from it.
var root, program string

func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "webhook-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := apiserver.Run(m, func(started *apiserver.Server) error {
		server = started
		return build(context.Background(), dir)
	})
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func build(ctx context.Context, dir string) (err error) {
	if root, err = repo.Root(); err != nil {
		return err
	}
	program = filepath.Join(dir, "slurm-operator")
	command := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/slurm-operator")
	command.Dir, command.Stderr = root, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("building the operator: %w", err)
	}
	return nil
}
