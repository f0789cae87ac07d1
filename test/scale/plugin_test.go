//go:build scale

package scale_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/hack/repo"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/test/integration/apiserver"
)

// The cluster that the plugin is measured with, and how often.
const (
	pluginNodeSets  = 50
	podsPerNodeSet  = 100
	pluginRuns      = 5
	maxRequests     = 5
	statusGoal      = 2 * time.Second
	parallelCreates = 16
)

// TestPluginStatus measures kubectl slurm status of a cluster of 5,000 nodes, the real program against a real API
// server. The baseline is kubectl get pods of the same cluster.
func TestPluginStatus(t *testing.T) {
	server := apiserver.Start(t)
	server.Config.QPS = -1
	if err := slinkyv1beta1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	access, err := client.New(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	createCluster(t, access)
	proxy := startCounter(t, server.Config)
	environment := append(os.Environ(), "KUBECONFIG="+os.DevNull, "NO_COLOR=1")
	plugin := program{buildPlugin(t), environment, []string{"--server=" + proxy.url, "--namespace=slurm", "status"}}
	kubectl := program{server.Kubectl, environment, []string{
		"--server=" + proxy.url, "--namespace=slurm", "--cache-dir=" + t.TempDir(), "get", "pods", "--no-headers",
	}}

	baseline, _, listed := kubectl.measure(t, proxy)
	if pods := strings.Count(listed, "\n"); pods != pluginNodeSets*podsPerNodeSet {
		t.Errorf("kubectl lists %d pods", pods)
	}
	took, requests, shown := plugin.measure(t, proxy)
	for _, want := range []string{
		"5000: 4000 allocated, 1000 idle", "NodeSets/rack-00 … rack-49 (50)", "5000/5000",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("status does not show %q:\n%s", want, shown)
		}
	}
	t.Logf("status of 5,000 nodes: %s and %d requests; kubectl get pods: %s (medians of %d runs, goal %s)",
		took.Round(time.Millisecond), requests, baseline.Round(time.Millisecond), pluginRuns, statusGoal)
	if requests > maxRequests {
		t.Errorf("status sent %d requests, want at most %d", requests, maxRequests)
	}
	if took > statusGoal && took > baseline {
		t.Errorf("status took %s, and kubectl get pods %s", took, baseline)
	}
}

// A program is one that is measured.
type program struct {
	path        string
	environment []string
	arguments   []string
}

// measure runs a program several times, and returns the median of the times, the largest number of requests and the
// last output. A first run, such as one that fills a cache, does not count.
func (p program) measure(t *testing.T, proxy *counter) (median time.Duration, requests int, printed string) {
	t.Helper()
	var times []time.Duration
	for run := range pluginRuns + 1 {
		proxy.reset()
		var out, problems bytes.Buffer
		command := exec.CommandContext(t.Context(), p.path, p.arguments...)
		command.Env, command.Stdout, command.Stderr = p.environment, &out, &problems
		started := time.Now()
		if err := command.Run(); err != nil {
			t.Fatalf("%s %s: %v\n%s", p.path, strings.Join(p.arguments, " "), err, &problems)
		}
		if run == 0 {
			continue
		}
		times = append(times, time.Since(started))
		requests, printed = max(requests, proxy.reset()), out.String()
	}
	slices.Sort(times)
	return times[len(times)/2], requests, printed
}

// A counter is a proxy in front of an API server that counts requests.
type counter struct {
	url string

	mu       sync.Mutex
	requests int
}

// reset returns how many requests there were since the last reset.
func (c *counter) reset() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests := c.requests
	c.requests = 0
	return requests
}

func startCounter(t *testing.T, config *rest.Config) *counter {
	t.Helper()
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	if proxy.Transport, err = rest.TransportFor(config); err != nil {
		t.Fatal(err)
	}
	counter := &counter{}
	listener := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		counter.mu.Lock()
		counter.requests++
		counter.mu.Unlock()
		proxy.ServeHTTP(response, request)
	}))
	t.Cleanup(listener.Close)
	counter.url = listener.URL
	return counter
}

// buildPlugin builds the plugin as a release does, and returns its path.
func buildPlugin(t *testing.T) string {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubectl-slurm")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path,
		"./cmd/kubectl-slurm")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, out)
	}
	return path
}

// createCluster creates the objects of a cluster with 5,000 Slurm nodes, as the operator would.
func createCluster(t *testing.T, access client.Client) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(access.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}}))
	healthy := []metav1.Condition{{
		Type: slinkyv1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: slinkyv1beta1.ReasonAsExpected,
		Message: "all pods are ready", LastTransitionTime: metav1.Now(),
	}}
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "slurm"}}
	must(access.Create(t.Context(), controller))
	controller.Status.Conditions, controller.Status.ObservedGeneration = healthy, controller.Generation
	controller.Status.Nodes = &slinkyv1beta1.NodeCounts{Total: 5000, Allocated: 4000, Idle: 1000}
	must(access.Status().Update(t.Context(), controller))
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(parallelCreates)
	for i := range pluginNodeSets {
		set := &slinkyv1beta1.NodeSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: fmt.Sprintf("rack-%02d", i)},
			Spec: slinkyv1beta1.NodeSetSpec{
				ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}, Replicas: new(int32(podsPerNodeSet)),
			},
		}
		must(access.Create(t.Context(), set))
		set.Status = slinkyv1beta1.NodeSetStatus{
			Desired: podsPerNodeSet, Replicas: podsPerNodeSet, ReadyReplicas: podsPerNodeSet, AvailableReplicas: podsPerNodeSet,
			UpdatedReplicas: podsPerNodeSet, SlurmAllocated: 80, SlurmIdle: 20, Conditions: healthy,
			ObservedGeneration: set.Generation,
		}
		must(access.Status().Update(t.Context(), set))
		for ordinal := range podsPerNodeSet {
			group.Go(func() error { return access.Create(ctx, workerPod(set, ordinal)) })
		}
	}
	must(group.Wait())
}

// workerPod returns a slurmd pod.
func workerPod(nodeSet *slinkyv1beta1.NodeSet, ordinal int) *corev1.Pod {
	labels := naming.Labels(naming.Slurmd, nodeSet.Name)
	labels[naming.LabelController] = "slurm"
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: naming.WorkerPod(nodeSet, ordinal), Labels: labels},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: string(naming.Slurmd), Image: "slurm-operator/slurmd:26.05"}},
		},
	}
}
