// Package kube lets end-to-end tests talk to a cluster as an administrator does: through kubectl, with the KUBECONFIG
// of the environment. It works on any cluster.
package kube

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"testing"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"
)

// Namespace is a namespace that is used by one test only.
type Namespace struct{ Name string }

// NewNamespace re-creates a namespace and deletes it when the test has passed. After a failure it stays for inspection
// until the next run of the test.
func NewNamespace(t *testing.T, name string) Namespace {
	t.Helper()
	namespace := Namespace{name}
	namespace.MustRun(t, "delete", "namespace", name, "--ignore-not-found", "--timeout=10m")
	namespace.MustRun(t, "create", "namespace", name)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if t.Failed() {
			namespace.Describe(t)
			return
		}
		if out, err := namespace.Run(ctx, "delete", "namespace", name, "--ignore-not-found",
			"--timeout=10m"); err != nil {
			t.Errorf("deleting namespace %s: %v\n%s", name, err, out)
			namespace.Describe(t)
		}
	})
	return namespace
}

// Run runs kubectl in the namespace and returns its output.
func (n Namespace) Run(ctx context.Context, arguments ...string) (string, error) {
	return n.runWith(ctx, nil, arguments...)
}

func (n Namespace) runWith(ctx context.Context, input []byte, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "kubectl", append([]string{"--namespace", n.Name}, arguments...)...)
	cmd.Stdin = bytes.NewReader(input)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err,
			strings.TrimSpace(problems.String()))
	}
	return out.String(), nil
}

// MustRun runs kubectl, fails the test if that fails, and returns its output without surrounding space.
func (n Namespace) MustRun(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := n.Run(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// Exec runs a command in a pod, or in one of a workload's pods.
func (n Namespace) Exec(ctx context.Context, target string, command ...string) (string, error) {
	return n.Run(ctx, append([]string{"exec", target, "--"}, command...)...)
}

// ExecWith is like Exec, with an input for the command.
func (n Namespace) ExecWith(ctx context.Context, input []byte, target string, command ...string) (string, error) {
	return n.runWith(ctx, input, append([]string{"exec", "--stdin", target, "--"}, command...)...)
}

// Apply applies manifests, and fails the test if the API server warns about one of them.
func (n Namespace) Apply(t *testing.T, manifests []byte) {
	t.Helper()
	if _, err := n.runWith(t.Context(), manifests, "apply", "--server-side", "--warnings-as-errors", "-f",
		"-"); err != nil {
		t.Fatal(err)
	}
}

// ApplyDespiteWarnings is like Apply for manifests that are wrong on purpose.
func (n Namespace) ApplyDespiteWarnings(t *testing.T, manifests []byte) {
	t.Helper()
	if _, err := n.runWith(t.Context(), manifests, "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// ApplyTemplates executes manifest templates and applies the result.
func (n Namespace) ApplyTemplates(t *testing.T, files fs.FS, pattern string, values any) {
	t.Helper()
	n.Apply(t, executeTemplates(t, files, pattern, values))
}

// TakeTemplates is like ApplyTemplates for objects that another field manager has applied: all of its fields that the
// manifests do not have are removed.
func (n Namespace) TakeTemplates(t *testing.T, manager string, files fs.FS, pattern string, values any) {
	t.Helper()
	if _, err := n.runWith(t.Context(), executeTemplates(t, files, pattern, values), "apply", "--server-side",
		"--force-conflicts", "--field-manager="+manager, "--filename=-"); err != nil {
		t.Fatal(err)
	}
}

func executeTemplates(t *testing.T, files fs.FS, pattern string, values any) []byte {
	t.Helper()
	all, err := template.ParseFS(files, pattern)
	if err != nil {
		t.Fatal(err)
	}
	var manifests bytes.Buffer
	for _, manifest := range all.Templates() {
		manifests.WriteString("\n---\n")
		if err := manifest.Execute(&manifests, values); err != nil {
			t.Fatal(err)
		}
	}
	return manifests.Bytes()
}

// CreateSecret creates a Secret.
func (n Namespace) CreateSecret(t *testing.T, name string, data map[string][]byte) {
	t.Helper()
	manifest, err := yaml.Marshal(corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       data,
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Apply(t, manifest)
}

// DeletePod deletes a pod and waits until it is gone.
func (n Namespace) DeletePod(t *testing.T, name string) {
	t.Helper()
	n.MustRun(t, "delete", "pod", name, "--timeout=10m")
}

// Evict evicts a pod through the eviction API, as kubectl drain does. With dryRun, it only reports whether that would
// succeed.
func (n Namespace) Evict(ctx context.Context, pod string, dryRun bool) (string, error) {
	eviction := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`, pod,
		n.Name)
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", n.Name, pod)
	if dryRun {
		path += "?dryRun=All"
	}
	return n.runWith(ctx, []byte(eviction), "create", "--raw", path, "-f", "-")
}

const (
	// attemptTimeout limits a single check: a command that hangs must not use up the time of later attempts.
	attemptTimeout = time.Minute
	// slack multiplies timeouts, which are given for an idle computer, because a busy computer must not fail a test.
	// Bounds that are themselves requirements are measured and compared by the tests.
	slack = 5
)

// Eventually waits until check returns no error, and fails the test with the last error. The timeout is for an idle
// computer: it is multiplied by slack.
func (n Namespace) Eventually(t *testing.T, timeout time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, slack*timeout, true,
		func(ctx context.Context) (bool, error) {
			ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
			defer cancel()
			last = check(ctx)
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("waiting for %s in namespace %s: %v; last: %v", what, n.Name, err, last)
	}
}
