//go:build integration

// Package api_test proves the API on a real kube-apiserver: what it accepts, what it refuses and with which words, what
// it fills in, and what kubectl shows of it. KUBEBUILDER_ASSETS names the directory with kube-apiserver, etcd and
// kubectl.
package api_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files under testdata")

	// server is the API server that all tests share; every test works in a namespace of its own.
	server struct {
		client     client.Client
		kubectl    string
		kubeconfig string
		cache      string
	}
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	// Also after a failed start: the API server may run and only the CRDs be at fault.
	defer func() {
		if stopErr := environment.Stop(); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("stopping the API server: %w", stopErr))
		}
	}()
	config, err := environment.Start()
	if err != nil {
		return 0, fmt.Errorf("starting the API server: %w", err)
	}
	if err := slinkyv1beta1.AddToScheme(scheme.Scheme); err != nil {
		return 0, err
	}
	config.QPS = -1
	plain, err := client.New(config, client.Options{})
	if err != nil {
		return 0, fmt.Errorf("making a client: %w", err)
	}
	server.client = client.WithFieldValidation(plain, metav1.FieldValidationStrict)
	dir, err := os.MkdirTemp("", "api-test-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	server.cache = filepath.Join(dir, "cache")
	server.kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(server.kubeconfig, environment.KubeConfig, 0o600); err != nil {
		return 0, err
	}
	server.kubectl = filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	return m.Run(), nil
}

// namespace makes a namespace for one test.
func namespace(t *testing.T) string {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := server.client.Create(t.Context(), object); err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return object.Name
}

// object returns an object of one of our kinds as a user would write it.
func object(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	result := &unstructured.Unstructured{Object: map[string]any{}}
	result.SetGroupVersionKind(slinkyv1beta1.SchemeGroupVersion.WithKind(kind))
	result.SetNamespace(namespace)
	result.SetName(name)
	if spec != nil {
		result.Object["spec"] = spec
	}
	return result
}

// kubectl runs kubectl and returns what it prints, on both outputs.
func kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	args = append([]string{"--kubeconfig", server.kubeconfig, "--cache-dir", server.cache}, args...)
	out, err := exec.CommandContext(t.Context(), server.kubectl, args...).CombinedOutput()
	return string(out), err
}

// readTable reads a YAML file of testdata.
func readTable(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
}

// checkGolden compares with a golden file of testdata, or rewrites it with -update.
func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); review and run with -update:\n%s", path, diff)
	}
}
