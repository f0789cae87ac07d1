// Package release lets tests publish a release to a registry in their own process, and verify it as users do: with
// cosign and with a key that exists only in the test.
package release

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/hack/release/build"
	"github.com/slurm-operator/slurm-operator/hack/release/publish"
	"github.com/slurm-operator/slurm-operator/hack/repo"
)

// StartRegistry starts a registry without TLS on a free port of a host address, and returns its address. It keeps blobs
// in files, and is stopped at the end of the test.
func StartRegistry(t *testing.T, host string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler: registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(t.TempDir())),
			registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))),
		ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// Options returns those of a release of this checkout, for this computer's architecture, with the images of Slurm from
// the cache.
func Options(t *testing.T, version, registry string) build.Options {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	source, err := build.ReadSource(t.Context(), root, true)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := images.Dir()
	if err != nil {
		t.Fatal(err)
	}
	return build.Options{
		Version: version, Registry: registry, Out: t.TempDir(), Source: source, Architectures: []string{runtime.GOARCH},
		Layouts: []string{layout}, Builder: "test", Compile: build.Compiler(root), Helm: Helm(t), Log: t.Output(),
	}
}

// Helm returns the path of the pinned Helm.
func Helm(t *testing.T) string {
	t.Helper()
	return program(t, binaries.Helm, "helm")
}

func program(t *testing.T, group binaries.Group, name string) string {
	t.Helper()
	dir, err := group.Build(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// Signer signs and verifies with a key of its own.
type Signer struct{ cosign, key, public string }

// NewSigner generates a key. The test cannot run in parallel with others, because its password is in the environment.
func NewSigner(t *testing.T) Signer {
	t.Helper()
	t.Setenv("COSIGN_PASSWORD", "")
	prefix := filepath.Join(t.TempDir(), "cosign")
	signer := Signer{cosign: program(t, binaries.Cosign, "cosign"), key: prefix + ".key", public: prefix + ".pub"}
	if out, err := signer.run(t.Context(), "generate-key-pair", "--output-key-prefix", prefix); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return signer
}

// Publish publishes a release. Its signatures are in no transparency log.
func (s Signer) Publish(ctx context.Context, dir, helm string, progress io.Writer) error {
	return publish.Publish(ctx, publish.Options{
		Dir: dir, PlainHTTP: true, Cosign: s.cosign, Helm: helm, Log: progress,
		SignFlags: []string{"--key=" + s.key, "--tlog-upload=false", "--use-signing-config=false"},
	})
}

// Verify verifies with a command of cosign (verify, verify-attestation, verify-blob), and returns its output.
func (s Signer) Verify(ctx context.Context, command string, arguments ...string) (string, error) {
	all := []string{command, "--key=" + s.public, "--insecure-ignore-tlog=true"}
	if command != "verify-blob" {
		all = append(all, "--allow-http-registry")
	}
	return s.run(ctx, append(all, arguments...)...)
}

func (s Signer) run(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, s.cosign, arguments...)
	command.Env = os.Environ()
	out, err := command.CombinedOutput()
	return string(out), err
}
