// Package scale is the yardstick for controllers of thousands of pods. It measures a workload in a simulated cluster (how
// fast its pods come and go, how often the API server is written to, what the control plane needs) and reports the
// figures as JSON and as a table in the documentation.
//
// The baseline that it measures is what Kubernetes itself offers: a bare StatefulSet and a bare Deployment.
package scale

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/slurm-operator/slurm-operator/test/cluster/audit"
	"github.com/slurm-operator/slurm-operator/test/scale/simulated"
)

// Workload is something that makes pods in the default namespace.
type Workload struct {
	Kind string
	// Pods is how many it makes, and Selector chooses them.
	Pods     int
	Selector string
	// Users are the controllers that care for it, by the names under which they write.
	Users []string

	Create func(ctx context.Context) error
	// Settled reports whether its controllers have nothing left to write about it while all its pods are Ready.
	Settled func(ctx context.Context) (bool, error)
	// While is what else is measured while it is there and has settled; nil for nothing.
	While  func()
	Delete func(ctx context.Context) error
}

// Patience is when a measurement with so many pods gives up on a step. It is no bound of what is measured: it only has to be
// longer than a busy computer can take.
func Patience(pods int) time.Duration { return 10*time.Minute + time.Duration(pods)*time.Second }

// patience is how long any one step of a measurement may take: enough for a machine that is busy with other things.
func (w Workload) patience() time.Duration {
	return Patience(w.Pods)
}

// Measure creates a workload, waits until all its pods are Ready, deletes it and waits until they are gone.
func Measure(t *testing.T, cluster *simulated.Cluster, workload Workload) Result {
	t.Helper()
	pods := cluster.Pods(t, corev1.NamespaceDefault, workload.Selector)
	step := func(doing string, do func(ctx context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeoutCause(t.Context(), workload.patience(), fmt.Errorf("not done within %s", workload.patience()))
		defer cancel()
		if err := do(ctx); err != nil {
			t.Fatalf("%s: %v", doing, err)
		}
	}
	until := func(wanted func(simulated.PodCount) bool) func(context.Context) error {
		return func(ctx context.Context) error { return pods.Wait(ctx, wanted) }
	}
	result := Result{Kind: workload.Kind, Pods: workload.Pods, Controllers: workload.Users}

	started := time.Now()
	step("creating", workload.Create)
	step("until all pods are created", until(func(c simulated.PodCount) bool { return c.Created >= workload.Pods }))
	result.Created = time.Since(started).Seconds()
	step("until all pods are Ready", until(func(c simulated.PodCount) bool { return c.Ready >= workload.Pods }))
	result.Ready = time.Since(started).Seconds()
	step("until the controllers have settled", func(ctx context.Context) error {
		return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, workload.Settled)
	})
	settled := time.Now()
	result.Settled = settled.Sub(started).Seconds()
	result.CreationCPU = map[string]float64{}
	for name, used := range cluster.Usage(t) {
		result.CreationCPU[name] = used.CPU.Seconds()
	}
	if workload.While != nil {
		workload.While()
	}

	deleted := time.Now()
	step("deleting", workload.Delete)
	step("until all pods are gone", until(func(c simulated.PodCount) bool { return c.Present == 0 }))
	result.Gone = time.Since(deleted).Seconds()
	if made := pods.Count().Created; made != workload.Pods && workload.While == nil {
		t.Errorf("%d pods were created for %d", made, workload.Pods)
	}

	writes := cluster.Writes(t, started)
	result.Refused = len(pick(writes, func(r audit.Request) bool {
		return isRefused(r) && (r.At.Before(settled) || !r.At.Before(deleted))
	}))
	writes = pick(writes, func(r audit.Request) bool { return !isRefused(r) })
	result.Creation = summarize(pick(writes, func(r audit.Request) bool { return r.At.Before(settled) }))
	result.Deletion = summarize(pick(writes, func(r audit.Request) bool { return !r.At.Before(deleted) }))
	result.Daemons = map[string]Usage{}
	for name, used := range cluster.Usage(t) {
		result.Daemons[name] = Usage{PeakMemory: used.PeakMemory, CPU: used.CPU.Seconds()}
	}
	return result
}

// isRefused reports whether the API server was too busy for a request. Clients send it again, so it is no write of its own.
func isRefused(r audit.Request) bool { return r.Code == http.StatusTooManyRequests }

func pick(requests []audit.Request, wanted func(audit.Request) bool) []audit.Request {
	return slices.DeleteFunc(slices.Clone(requests), func(r audit.Request) bool { return !wanted(r) })
}
