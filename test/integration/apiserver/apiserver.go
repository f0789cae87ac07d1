// Package apiserver runs a real kube-apiserver and etcd for integration tests. Their binaries are built into the cache
// on first use.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
	"github.com/slurm-operator/slurm-operator/hack/repo"
)

// Server is an API server with our CRDs and no controllers.
type Server struct {
	// Config connects as an administrator.
	Config *rest.Config
	// Kubeconfig is the path of a kubeconfig file for the same access.
	Kubeconfig string
	// Kubectl is the path of a kubectl with the server's version.
	Kubectl string

	environment *envtest.Environment
	dir         string
}

// Start starts a server for one test.
func Start(t *testing.T) *Server {
	t.Helper()
	server, err := start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// Run shares one server among all tests of a package. TestMain calls it: it passes the server to use, runs the tests
// and returns the exit code.
func Run(m *testing.M, use func(*Server) error) int {
	server, err := start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := 1
	if err = use(server); err == nil {
		code = m.Run()
	}
	if err = errors.Join(err, server.stop()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func start(ctx context.Context) (*Server, error) {
	assets, err := binaries.ControlPlane.Build(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	root, err := repo.Root()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "apiserver-")
	if err != nil {
		return nil, err
	}
	server := &Server{
		Kubeconfig: filepath.Join(dir, "kubeconfig"),
		Kubectl:    filepath.Join(assets, "kubectl"),
		dir:        dir,
		environment: &envtest.Environment{
			BinaryAssetsDirectory: assets,
			CRDDirectoryPaths:     []string{filepath.Join(root, "config", "crd", "bases")},
			ErrorIfCRDPathMissing: true,
			// envtest's own 20 seconds are too few beside a compiler.
			ControlPlaneStartTimeout: 3 * time.Minute,
		},
	}
	// Nothing deletes the Services of finished tests, and envtest's own range has only 254 addresses.
	server.environment.ControlPlane.GetAPIServer().Configure().
		Set("service-cluster-ip-range", "10.96.0.0/16").
		// The clients of all tests share one connection. When it has as many streams as the server allows (100), the
		// server may see a new stream before the end of one that the client has already seen to end, and then it
		// answers the new one with PROTOCOL_ERROR (golang.org/x/net/http2, over_max_streams).
		Set("http2-max-streams-per-connection", "10000")
	if server.Config, err = server.environment.Start(); err != nil {
		// The API server may be running if only the CRDs failed.
		return nil, errors.Join(fmt.Errorf("starting the API server: %w", err), server.stop())
	}
	if err := os.WriteFile(server.Kubeconfig, server.environment.KubeConfig, 0o600); err != nil {
		return nil, errors.Join(err, server.stop())
	}
	return server, nil
}

func (s *Server) stop() error {
	if err := s.environment.Stop(); err != nil {
		return fmt.Errorf("stopping the API server: %w", err)
	}
	return os.RemoveAll(s.dir)
}
