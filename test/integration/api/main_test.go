//go:build integration

// Package api_test proves the API on a real kube-apiserver: what it accepts, what it refuses and with which words, what
// it fills in, and what kubectl shows of it.
package api_test

import (
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
	"sigs.k8s.io/yaml"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/test/integration/apiserver"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files under testdata")

	// server is the API server that all tests share; every test uses its own namespace.
	server *apiserver.Server
	// strict is a client with strict field validation: warnings about fields become errors.
	strict client.Client
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(apiserver.Run(m, func(started *apiserver.Server) error {
		server = started
		server.Config.QPS = -1
		if err := slinkyv1beta1.AddToScheme(scheme.Scheme); err != nil {
			return err
		}
		plain, err := client.New(server.Config, client.Options{})
		if err != nil {
			return fmt.Errorf("creating a client: %w", err)
		}
		strict = client.WithFieldValidation(plain, metav1.FieldValidationStrict)
		return nil
	}))
}

// namespace creates a namespace for a test.
func namespace(t *testing.T) string {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := strict.Create(t.Context(), object); err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return object.Name
}

// object returns an object of one of our kinds, as in a user's manifest.
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

// kubectl runs kubectl and returns its stdout and stderr.
func kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	args = append([]string{"--kubeconfig", server.Kubeconfig, "--cache-dir",
		filepath.Join(filepath.Dir(server.Kubeconfig), "cache")}, args...)
	out, err := exec.CommandContext(t.Context(), server.Kubectl, args...).CombinedOutput()
	return string(out), err
}

// readTable reads a YAML file from testdata.
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

// checkGolden compares got with a golden file in testdata, or rewrites it with -update.
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
