//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// TestConfinedNode checks confinement on a Kubernetes node with cgroup v2: a kubelet and containerd in a virtual
// machine. Most of it is slow, because the machine's processor is emulated.
func TestConfinedNode(t *testing.T) {
	operator := startOperator(t)
	node := startMachine(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			set := startMachineSet(t, operator, version, node)
			t.Run("a RuntimeClass mounts cgroups writable", func(t *testing.T) {
				set.isConfined(t, true)
				set.hasSecurity(t, "cgroup-writable", false)
				set.endsOnlyTheHog(t)
			})
			t.Run("privileged pods have writable cgroups", func(t *testing.T) {
				jobs := set.submitJobs(t, "access", "gpu")
				set.patch(t, "nodeset/gpu", map[string]any{
					"cgroupAccess": "Privileged",
					"template":     map[string]any{"spec": map[string]any{"runtimeClassName": nil}},
				})
				set.hasSecurity(t, "", true)
				jobs.stop(t)
				jobs.checkAllCompleted(t)
				set.isConfined(t, true)
				set.endsOnlyTheHog(t)
			})
			t.Run("changes without losing a job", set.changesConfinement)
		})
	}
}

// startMachine adds the virtual machine to the cluster until the test ends, and returns the name of its Kubernetes
// node.
func startMachine(t *testing.T) string {
	t.Helper()
	own := ownCluster(t)
	t.Cleanup(func() {
		if err := own.StopMachine(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := own.StartMachine(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	return own.Machine.Name
}

// machineInterval is the time between jobs on a machine, which needs some seconds to start one.
const machineInterval = 8 * time.Second

// startMachineSet starts a cluster, and its NodeSet on a machine.
func startMachineSet(t *testing.T, operator kube.Namespace, version, node string) *nodeSet {
	t.Helper()
	set := &nodeSet{slurmCluster: startServices(t, operator, "machine", version), size: 2}
	set.interval = machineInterval
	t.Cleanup(func() {
		if t.Failed() {
			out, err := set.namespace.Run(context.WithoutCancel(t.Context()), "logs", "--prefix", "--tail=-1",
				"--selector=app.kubernetes.io/name=slurmd", "--container=slurmd")
			t.Logf("the logs of slurmd (%v):\n%s", err, out)
		}
	})
	started := time.Now()
	set.namespace.ApplyTemplates(t, manifests, "nodeset/machine.yaml", settings{
		smokeSettings: smokeSettings{Version: version}, Nodes: set.size, Node: node,
	})
	becomesReady(t, set.namespace, 5*time.Minute, "nodeset/gpu")
	t.Logf("%s: %d nodes ready %.1f s after they were applied", version, set.size, time.Since(started).Seconds())
	set.waitUntilAllIdle(t)
	return set
}

// hasSecurity waits until all pods have a RuntimeClass, and slurmd's container is privileged or not. Without
// privileges, it must not have SYS_ADMIN either.
func (n *nodeSet) hasSecurity(t *testing.T, runtimeClass string, privileged bool) {
	t.Helper()
	want := fmt.Sprintf("%s|%t", runtimeClass, privileged)
	n.namespace.Eventually(t, 8*time.Minute, "pods with "+want, func(ctx context.Context) error {
		out, err := n.namespace.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/name=slurmd", "--output",
			`jsonpath={range .items[*]}{.spec.runtimeClassName}|`+
				`{range .spec.containers[?(@.name=="slurmd")]}{.securityContext.privileged}|`+
				`{.securityContext.capabilities.add}{end}{"\n"}{end}`)
		if err != nil {
			return err
		}
		for pod := range strings.Lines(out) {
			class, rest, _ := strings.Cut(strings.TrimSpace(pod), "|")
			is, capabilities, _ := strings.Cut(rest, "|")
			if class != runtimeClass || (is == "true") != privileged || strings.Contains(capabilities, "SYS_ADMIN") {
				return fmt.Errorf("a pod has %q", pod)
			}
		}
		return conditionIs(ctx, n.namespace, "nodeset/gpu", "Ready", "True")
	})
}
