//go:build e2e

package e2e_test

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

//go:embed baremetal/*.yaml cluster/*.yaml external/*.yaml ha/*.yaml movein/*.yaml nodeset/*.yaml takeover/*.yaml
var manifests embed.FS

// settings are the values for the manifest templates.
type settings struct {
	smokeSettings
	// AuthorizedKey may log in as root.
	AuthorizedKey string
	// ExtraConf are additional lines of slurm.conf.
	ExtraConf []string
	// ConfServer is the address at which slurmd reaches slurmctld.
	ConfServer string
	// Nodes is the number of slurmds, and Node the Kubernetes node they run on; empty for any.
	Nodes int
	Node  string
	// Elsewhere is the namespace of the daemons that a cluster uses as external ones.
	Elsewhere string
}

// startOperator installs the operator. It stays installed for the following tests.
func startOperator(t *testing.T) kube.Namespace {
	t.Helper()
	operator := operatorNamespace
	operator.Apply(t,
		[]byte("{apiVersion: v1, kind: Namespace, metadata: {name: slurm-operator, labels: "+
			"{pod-security.kubernetes.io/enforce: restricted}}}"))
	helmCharts(".").installCRDs(t)
	helmCharts(".").installOperator(t)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		out, err := operator.Run(context.WithoutCancel(t.Context()), "logs", "deployment/slurm-operator", "--tail=100")
		t.Logf("the operator's log (%v):\n%s", err, out)
	})
	return operator
}

// conditionIs returns an error unless a condition of an object has the wanted status, reason and message prefix.
func conditionIs(ctx context.Context, namespace kube.Namespace, object, condition, want string) error {
	out, err := namespace.Run(ctx, "get", object, "--output",
		fmt.Sprintf(`jsonpath={range .status.conditions[?(@.type==%q)]}{.status}|{.reason}|{.message}{end}`, condition))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(out, want) {
		return fmt.Errorf("%s has %s %q, not %q", object, condition, out, want)
	}
	return nil
}

// becomesReady waits until objects are ready.
func becomesReady(t *testing.T, namespace kube.Namespace, timeout time.Duration, objects ...string) {
	t.Helper()
	namespace.Eventually(t, timeout, strings.Join(objects, ", ")+" ready", func(ctx context.Context) error {
		var faults []error
		for _, object := range objects {
			faults = append(faults, conditionIs(ctx, namespace, object, "Ready", "True"))
		}
		return errors.Join(faults...)
	})
}
