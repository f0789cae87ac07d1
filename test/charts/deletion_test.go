//go:build integration

package charts_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// With foreground deletion Kubernetes would delete the pods of a NodeSet and their jobs without waiting for the
// operator.
func TestForegroundDeletionIsRefused(t *testing.T) {
	policy, err := render(t.Context(), "slurm-operator", nil, "--show-only=templates/deletion.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kubectl := func(ctx context.Context, input string, arguments ...string) (string, error) {
		return run(ctx, []byte(input), server.Kubectl, append(arguments, "--kubeconfig="+server.Kubeconfig)...)
	}
	must := func(input string, arguments ...string) {
		t.Helper()
		if _, err := kubectl(t.Context(), input, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	must(policy, "apply", "--filename=-")
	t.Cleanup(func() {
		if _, err := kubectl(context.WithoutCancel(t.Context()), policy, "delete", "--filename=-"); err != nil {
			t.Error(err)
		}
	})
	create := func(name, annotations string) {
		t.Helper()
		must(fmt.Sprintf(`{apiVersion: slinky.slurm.net/v1beta1, kind: NodeSet, metadata: {name: %s, namespace: default, annotations: %s},
  spec: {controllerRef: {name: slurm}}}`, name, annotations), "create", "--filename=-")
	}
	create("guarded", "{}")
	// The API server needs a moment to load a policy.
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 5*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			_, err := kubectl(ctx, "", "delete", "nodeset/guarded", "--cascade=foreground", "--dry-run=server")
			return err != nil && strings.Contains(err.Error(), "delete it in the background"), nil
		}); err != nil {
		t.Fatalf("foreground deletion is not refused: %v", err)
	}
	must("", "delete", "nodeset/guarded", "--cascade=background")
	create("waived", "{nodeset.slinky.slurm.net/delete-without-drain: \"true\"}")
	must("", "delete", "nodeset/waived", "--cascade=foreground", "--wait=false")
	create("emptied", "{}")
	must("", "delete", "nodesets", "--all")
}
