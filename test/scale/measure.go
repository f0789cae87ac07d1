// Package scale measures controllers with thousands of pods. It runs a workload in a simulated cluster and measures how
// fast its pods are created and deleted, how many writes the API server gets, and what the control plane uses. It
// reports the figures as JSON and as a table in the documentation.
//
// The baseline is a plain StatefulSet and a plain Deployment.
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

// Workload is an object that creates pods in the default namespace.
type Workload struct {
	Kind string
	// Pods is the number of its pods, and Selector selects them.
	Pods     int
	Selector string
	// Users are the user names of the controllers that manage it.
	Users []string

	Create func(ctx context.Context) error
	// Settled reports whether its controllers have nothing left to write when all its pods are Ready.
	Settled func(ctx context.Context) (bool, error)
	// While runs further measurements between Settled and Delete; it may be nil.
	While  func()
	Delete func(ctx context.Context) error
}

// StepTimeout returns the timeout of each step of a measurement. It is not a bound for the results: it only has to be
// longer than a busy computer needs.
func StepTimeout(pods int) time.Duration { return 10*time.Minute + time.Duration(pods)*time.Second }

func (w Workload) stepTimeout() time.Duration { return StepTimeout(w.Pods) }

// Measure creates a workload, waits until all its pods are Ready, deletes it and waits until they are gone.
func Measure(t *testing.T, cluster *simulated.Cluster, workload Workload) Result {
	t.Helper()
	pods := cluster.Pods(t, corev1.NamespaceDefault, workload.Selector)
	step := func(doing string, do func(ctx context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeoutCause(t.Context(), workload.stepTimeout(),
			fmt.Errorf("not done within %s", workload.stepTimeout()))
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
	if created := pods.Count().Created; created != workload.Pods && workload.While == nil {
		t.Errorf("%d pods were created instead of %d", created, workload.Pods)
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

// isRefused reports whether the API server was too busy for a request. Clients retry it, so it does not count as a
// write.
func isRefused(r audit.Request) bool { return r.Code == http.StatusTooManyRequests }

func pick(requests []audit.Request, wanted func(audit.Request) bool) []audit.Request {
	return slices.DeleteFunc(slices.Clone(requests), func(r audit.Request) bool { return !wanted(r) })
}
