// Package apiserver gives integration tests a real kube-apiserver and etcd, built into the cache on first use.
package apiserver

import (
	"context"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
)

// Start starts an API server without any controllers beside it, installs the given directories of CRDs and stops it when
// the test ends.
func Start(t *testing.T, crdDirectories ...string) *rest.Config {
	t.Helper()
	environment, err := start(t.Context(), crdDirectories)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	return environment.Config
}

// Run shares one API server among all tests of a package: it is called from TestMain and hands its configuration to use
// before the tests run.
func Run(m *testing.M, use func(*rest.Config), crdDirectories ...string) int {
	environment, err := start(context.Background(), crdDirectories)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	use(environment.Config)
	code := m.Run()
	if err := environment.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the API server:", err)
		return 1
	}
	return code
}

func start(ctx context.Context, crdDirectories []string) (*envtest.Environment, error) {
	assets, err := binaries.ControlPlane.Build(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths:     crdDirectories,
		ErrorIfCRDPathMissing: true,
	}
	if _, err := environment.Start(); err != nil {
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	return environment, nil
}
