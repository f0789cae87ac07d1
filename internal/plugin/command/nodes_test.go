package command

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

func TestNodesJobsAndWhy(t *testing.T) {
	for name, arguments := range map[string][]string{
		"nodes.txt":          {"nodes"},
		"nodes-wide.txt":     {"nodes", "gpu-[0-3]", "--output=wide"},
		"nodes-closed.txt":   {"nodes", "--nodeset=gpu", "--closed"},
		"nodes-yaml.txt":     {"nodes", "gpu-3", "--output=yaml"},
		"jobs.txt":           {"jobs"},
		"jobs-wide.txt":      {"jobs", "--output=wide", "--state=running"},
		"why-update.txt":     {"why", "gpu-3"},
		"why-cordoned.txt":   {"why", "pod/gpu-2"},
		"why-down.txt":       {"why", "gpu-4"},
		"why-admin.txt":      {"why", "gpu-10"},
		"why-idle.txt":       {"why", "gpu-1"},
		"why-pending.txt":    {"why", "gpu-11"},
		"why-resources.txt":  {"why", "4712"},
		"why-dependency.txt": {"why", "job/4713"},
		"why-limit.txt":      {"why", "4714"},
		"why-running.txt":    {"why", "4711"},
		"why-update.yaml":    {"why", "gpu-3", "--output=yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, loaded(t, "cluster.yaml", "pods.yaml"), arguments...)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name, out)
		})
	}
}

func TestNodesWithoutRights(t *testing.T) {
	for name, test := range map[string]struct {
		forbidden []string
		arguments []string
	}{
		"nodes-without-kubernetes-nodes.txt": {[]string{"nodes"}, []string{"nodes"}},
		"why-without-kubernetes-nodes.txt":   {[]string{"nodes"}, []string{"why", "gpu-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := loaded(t, "cluster.yaml", "pods.yaml")
			server.Forbid(test.forbidden...)
			out, err := run(t, server, test.arguments...)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name, out)
		})
	}
}

// noExec is the answer for users who may not run commands in pods.
func noExec(context.Context, ...string) ([]byte, error) {
	return nil, &kube.Forbidden{
		Verb: "create", Resource: schema.GroupResource{Resource: "pods/exec"}, Namespace: "slurm",
	}
}

func TestCommandsWithoutExecShowPodConditions(t *testing.T) {
	for name, arguments := range map[string][]string{
		"nodes-without-exec.txt": {"nodes"},
		"why-without-exec.txt":   {"why", "gpu-3"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := runWith(t, loaded(t, "cluster.yaml", "pods.yaml"), noExec, arguments...)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name, out)
		})
	}
	for _, arguments := range [][]string{{"jobs"}, {"why", "4711"}} {
		_, err := runWith(t, loaded(t, "cluster.yaml", "pods.yaml"), noExec, arguments...)
		if err == nil || !strings.Contains(err.Error(), "you may not create pods/exec in the namespace slurm") {
			t.Errorf("%q: %v", arguments, err)
		}
	}
}

func TestWhyExplainsFailures(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"an unknown node":         {[]string{"why", "gpu-99"}, "neither Slurm nor the namespace slurm has a node gpu-99"},
		"a job that is forgotten": {[]string{"why", "1"}, "sacct --jobs=1"},
		"a broken hostlist":       {[]string{"nodes", "gpu-[0"}, "write nodes as Slurm does"},
		"no target":               {[]string{"why"}, "accepts 1 arg"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := run(t, loaded(t, "cluster.yaml", "pods.yaml"), test.arguments...); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
