//go:build scale

package scale_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slurm-operator/slurm-operator/hack/cache"
	"github.com/slurm-operator/slurm-operator/hack/repo"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/test/scale"
	"github.com/slurm-operator/slurm-operator/test/scale/simulated"
)

var (
	sizes     = flag.String("pods", "1000,5000", "the numbers of pods to measure, separated by commas")
	workloads = flag.String("workloads", "StatefulSet,Deployment", "the workloads to measure, separated by commas")
	nodes     = flag.Int("nodes", 110, "how many nodes the simulated clusters have")
	out       = flag.String("out", "", "the directory for the results (default the cache directory)")
	docsTable = flag.String("docs", "",
		"the section of docs/scale.md to rewrite with the baseline; the sections of other results are then "+
			"rewritten too")
)

func TestBaseline(t *testing.T) {
	makers := map[string]func(kubernetes.Interface, int) scale.Workload{
		"StatefulSet": statefulSet, "Deployment": deployment,
	}
	report := scale.Report{Cores: runtime.NumCPU(), Nodes: *nodes}
	for _, pods := range podCounts(t) {
		for kind := range strings.SplitSeq(*workloads, ",") {
			maker, known := makers[kind]
			if !known {
				t.Fatalf("-workloads: no workload %q", kind)
			}
			passed := t.Run(fmt.Sprintf("%s of %d", kind, pods), func(t *testing.T) {
				cluster := simulated.Start(t, simulated.Options{Nodes: *nodes})
				report.Kubernetes = versionOf(t, cluster)
				result := scale.Measure(t, cluster, maker(cluster.Client, pods))
				checkWrites(t, result)
				report.Results = append(report.Results, result)
			})
			if !passed {
				t.FailNow()
			}
		}
	}
	publish(t, report, "scale.json", *docsTable)
}

// podCounts returns the numbers of pods to measure.
func podCounts(t *testing.T) []int {
	t.Helper()
	return numbers(t, "pods", *sizes)
}

// numbers returns the numbers in the value of a flag.
func numbers(t *testing.T, name, value string) []int {
	t.Helper()
	var all []int
	for text := range strings.SplitSeq(value, ",") {
		number, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("-%s: %v", name, err)
		}
		all = append(all, number)
	}
	return all
}

func versionOf(t *testing.T, cluster *simulated.Cluster) string {
	t.Helper()
	version, err := cluster.Client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return version.GitVersion
}

// checkWrites rejects implausible figures: every pod needs at least one write to be created, to be bound and to become
// Ready, and no user needs many writes for a pod.
func checkWrites(t *testing.T, result scale.Result) {
	t.Helper()
	for name, users := range map[string][]string{
		"controllers": result.Controllers, "scheduler": {"system:kube-scheduler"}, "kwok": {simulated.Kwok},
	} {
		if perPod := result.PerPod(result.Creation, users...); perPod < 1 || perPod > 3 {
			t.Errorf("%s: %.2f writes per pod; want 1 to 3: %v", name, perPod, result.Creation)
		}
	}
}

// publish logs a report, writes it to a file, and, if a section is given, into the documentation.
func publish(t *testing.T, report interface{ Markdown() string }, name, section string) {
	t.Helper()
	t.Logf("\n%s", report.Markdown())
	dir := *out
	if dir == "" {
		var err error
		if dir, err = cache.Dir(); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, name)
	if err := scale.WriteJSON(file, report); err != nil {
		t.Fatal(err)
	}
	t.Logf("wrote %s", file)
	if section == "" {
		return
	}
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	if err := scale.RewriteSection(filepath.Join(root, "docs", "scale.md"), section, report.Markdown()); err != nil {
		t.Fatal(err)
	}
}

const name = "baseline"

var labels = map[string]string{"app": name}

func statefulSet(client kubernetes.Interface, pods int) scale.Workload {
	return statefulSetOf(client, pods, podTemplate())
}

// statefulSetOf returns a StatefulSet with a pod template that has the labels.
func statefulSetOf(client kubernetes.Interface, pods int, template corev1.PodTemplateSpec) scale.Workload {
	sets := client.AppsV1().StatefulSets(corev1.NamespaceDefault)
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas:            new(int32(pods)),
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:            &metav1.LabelSelector{MatchLabels: labels},
			Template:            template,
		},
	}
	return scale.Workload{
		Kind: "StatefulSet", Pods: pods, Selector: "app=" + name,
		Users: []string{"system:serviceaccount:kube-system:statefulset-controller"},
		Create: func(ctx context.Context) error {
			_, err := sets.Create(ctx, set, metav1.CreateOptions{})
			return err
		},
		Settled: func(ctx context.Context) (bool, error) {
			found, err := sets.Get(ctx, name, metav1.GetOptions{})
			return err == nil && found.Status.AvailableReplicas == int32(pods), err
		},
		Delete: func(ctx context.Context) error {
			return sets.Delete(ctx, name, metav1.DeleteOptions{
				PropagationPolicy: new(metav1.DeletePropagationBackground),
			})
		},
	}
}

// statefulSetWithService returns a StatefulSet with its headless Service, which gives its pods DNS names as the Service
// of slurmd pods does.
func statefulSetWithService(client kubernetes.Interface, pods int, template corev1.PodTemplateSpec) scale.Workload {
	set := statefulSetOf(client, pods, template)
	createSet := set.Create
	set.Create = func(ctx context.Context) error {
		_, err := client.CoreV1().Services(corev1.NamespaceDefault).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone, Selector: labels, Ports: []corev1.ServicePort{{Port: naming.PortSlurmd}},
				PublishNotReadyAddresses: true,
			},
		}, metav1.CreateOptions{})
		return errors.Join(err, createSet(ctx))
	}
	return set
}

func deployment(client kubernetes.Interface, pods int) scale.Workload {
	deployments := client.AppsV1().Deployments(corev1.NamespaceDefault)
	made := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(pods)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: podTemplate(),
		},
	}
	return scale.Workload{
		Kind: "Deployment", Pods: pods, Selector: "app=" + name,
		Users: []string{
			"system:serviceaccount:kube-system:deployment-controller",
			"system:serviceaccount:kube-system:replicaset-controller",
		},
		Create: func(ctx context.Context) error {
			_, err := deployments.Create(ctx, made, metav1.CreateOptions{})
			return err
		},
		Settled: func(ctx context.Context) (bool, error) {
			found, err := deployments.Get(ctx, name, metav1.GetOptions{})
			return err == nil && found.Status.AvailableReplicas == int32(pods), err
		},
		Delete: func(ctx context.Context) error {
			return deployments.Delete(ctx, name, metav1.DeleteOptions{
				PropagationPolicy: new(metav1.DeletePropagationBackground),
			})
		},
	}
}

func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
}
