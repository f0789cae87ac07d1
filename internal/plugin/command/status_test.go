package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/plugintest"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

func TestStatus(t *testing.T) {
	for name, arguments := range map[string][]string{
		"status.txt":      {"status"},
		"status-wide.txt": {"status", "slurm", "--output=wide"},
		"status.yaml":     {"status", "--all-namespaces", "--output=yaml"},
		"status.json":     {"status", "--output=json"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, loaded(t, "cluster.yaml"), arguments...)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name, out)
		})
	}
}

// large adds a cluster with 5,000 Slurm nodes in 50 NodeSets.
func large(server *plugintest.Server) {
	controller := &slinkyv1beta1.Controller{
		ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "slurm", UID: "c"},
		Status: slinkyv1beta1.ControllerStatus{
			Conditions: ready(), Nodes: &slinkyv1beta1.NodeCounts{Total: 5000, Allocated: 4000, Idle: 1000},
		},
	}
	server.Add(kube.Controllers, controller)
	for i := range 50 {
		server.Add(kube.NodeSets, &slinkyv1beta1.NodeSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: fmt.Sprintf("rack-%02d", i)},
			Spec:       slinkyv1beta1.NodeSetSpec{ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}},
			Status: slinkyv1beta1.NodeSetStatus{
				Desired: 100, Replicas: 100, AvailableReplicas: 100, SlurmAllocated: 80, SlurmIdle: 20, Conditions: ready(),
			},
		})
	}
}

func ready() []metav1.Condition {
	return []metav1.Condition{{
		Type: slinkyv1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: slinkyv1beta1.ReasonAsExpected,
		LastTransitionTime: metav1.NewTime(now.Add(-48 * time.Hour)),
	}}
}

func TestStatusOfManyNodesCostsFiveRequests(t *testing.T) {
	server := plugintest.NewServer(t)
	large(server)
	out, err := run(t, server, "status")
	if err != nil {
		t.Fatal(err)
	}
	if requests := server.Requests(); len(requests) > 5 {
		t.Errorf("%d requests: %s", len(requests), strings.Join(requests, ", "))
	}
	for _, request := range server.Requests() {
		if strings.Contains(request, "pods") {
			t.Errorf("%s", request)
		}
	}
	golden.Compare(t, "status-large.txt", out)
}

func TestStatusNamesMissingRights(t *testing.T) {
	server := loaded(t, "cluster.yaml")
	server.Forbid("controllers", "loginsets")
	out, err := run(t, server, "status")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "status-forbidden.txt", out)
}

func TestClusterIsChosen(t *testing.T) {
	server := loaded(t, "cluster.yaml", "pods.yaml")
	server.Add(kube.Controllers, &slinkyv1beta1.Controller{
		ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "test"},
	})
	if _, err := run(t, server, "jobs"); err == nil ||
		!strings.Contains(err.Error(), "several Slurm clusters: slurm, test; choose one with --controller") {
		t.Errorf("%v", err)
	}
	if out, err := run(t, server, "jobs", "--controller=slurm"); err != nil || !strings.Contains(out, "4711") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := run(t, server, "jobs", "--controller=test"); err == nil ||
		!strings.Contains(err.Error(), "no slurmctld pod of the Controller test runs") {
		t.Errorf("%v", err)
	}
	if _, err := run(t, server, "jobs", "--controller=other"); err == nil ||
		!strings.Contains(err.Error(), "there is no Controller other") {
		t.Errorf("%v", err)
	}
}

func TestCompletion(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"clusters":       {[]string{"status", ""}, "slurm\n:4"},
		"the controller": {[]string{"jobs", "--controller", ""}, "slurm\n:4"},
		"NodeSets":       {[]string{"nodes", "--nodeset", ""}, "cpu\ngpu\ndebug\n:4"},
		"nodes":          {[]string{"drain", "gpu-1"}, "gpu-1\n"},
		"nodes and jobs": {[]string{"why", ""}, "debug-1\n4711\talice train RUNNING\n"},
		"formats":        {[]string{"status", "--output", ""}, "wide\njson\nyaml\n:4"},
		"only one node":  {[]string{"why", "gpu-1", ""}, ":4"},
		"commands":       {[]string{"un"}, "undrain\t"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, loaded(t, "cluster.yaml", "pods.yaml"), append([]string{"__complete"}, test.arguments...)...)
			if err != nil || !strings.Contains(out, test.want) {
				t.Errorf("%v: %q, want %q", err, out, test.want)
			}
		})
	}
}

func TestStatusExplainsFailures(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"no cluster in the namespace": {[]string{"status", "--namespace=empty"}, "in the namespace empty; choose"},
		"no cluster of that name":     {[]string{"status", "slrum"}, "no Controller slrum in the namespace slurm; see"},
		"an unknown format":           {[]string{"status", "--output=xml"}, "use wide, json, yaml"},
		"an unknown command":          {[]string{"stauts"}, "did you mean status?"},
		"a program of Slurm":          {[]string{"sinfo"}, "kubectl slurm -- sinfo"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := run(t, loaded(t, "cluster.yaml"), test.arguments...); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
