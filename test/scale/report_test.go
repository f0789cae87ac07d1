package scale_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/test/scale"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMarkdown(t *testing.T) {
	report := scale.Report{Kubernetes: "v1.2.3", Cores: 2, Nodes: 10, Results: []scale.Result{{
		Kind: "Deployment", Pods: 100, Controllers: []string{"deployments", "replicasets"},
		Created: 1.23, Ready: 2.5, Settled: 2.75, Gone: 0.96,
		Creation: []scale.Writes{
			{User: "kwok", Verb: "patch", Resource: "pods/status", Requests: 101},
			{User: "replicasets", Verb: "create", Resource: "pods", Requests: 100},
			{User: "system:kube-scheduler", Verb: "create", Resource: "pods/binding", Requests: 100},
			{User: "deployments", Verb: "update", Resource: "deployments/status", Requests: 7},
			{User: "replicasets", Verb: "update", Resource: "replicasets/status", Requests: 5},
			{User: "admin", Verb: "create", Resource: "deployments", Requests: 1},
		},
		Deletion: []scale.Writes{
			{User: "kwok", Verb: "delete", Resource: "pods", Requests: 100},
			{
				User: "system:serviceaccount:kube-system:generic-garbage-collector", Verb: "delete", Resource: "pods",
				Requests: 100,
			},
		},
		Refused: 3,
		Daemons: map[string]scale.Usage{
			"etcd":           {PeakMemory: 100 << 20, CPU: 1.2},
			"kube-apiserver": {PeakMemory: 300 << 20, CPU: 9.6},
		},
	}}}
	compare(t, "report.md", report.Markdown())
}

func TestNodeSetMarkdown(t *testing.T) {
	writes := []scale.Writes{
		{User: scale.OperatorUser, Verb: "create", Resource: "pods", Requests: 100},
		{User: scale.OperatorUser, Verb: "patch", Resource: "pods/status", Requests: 150},
		{User: "kwok", Verb: "patch", Resource: "pods/status", Requests: 100},
	}
	report := scale.NodeSetReport{Kubernetes: "v1.2.3", Cores: 2, Nodes: 10, Results: []scale.NodeSetResult{{
		StatefulSet: scale.Result{Pods: 100, Created: 1, Ready: 2, Settled: 2, Gone: 4,
			Controllers: []string{"statefulsets"}, Creation: []scale.Writes{
				{User: "statefulsets", Verb: "create", Resource: "pods", Requests: 100},
			}},
		NodeSet:  scale.Result{Pods: 100, Created: 1.1, Ready: 2.2, Settled: 3, Gone: 3, Creation: writes},
		Creation: scale.Step{Pods: 100, Seconds: 3, Writes: writes, SlurmRequests: 120, SlurmBytes: 2_500_000, CPU: 0.5},
		ScaleIn:  scale.Step{Pods: 100, Seconds: 3.5, SlurmRequests: 12},
		Empty:    scale.Idle{CPU: 0.1, SlurmRequests: 12, SlurmBytes: 4000, Heap: 5_000_000},
		Idle:     scale.Idle{CPU: 0.11, SlurmRequests: 12, SlurmBytes: 4000, Heap: 6_000_000},
		Reaction: scale.Reaction{Pods: []float64{1, 3, 2}, Status: []float64{1.5}},
	}}}
	compare(t, "nodeset.md", report.Markdown())
}

// compare compares with a golden file.
func compare(t *testing.T, name, got string) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func TestRewriteSection(t *testing.T) {
	const document = "# Title\n<!-- baseline -->\nold\nlines\n<!-- end of baseline -->\n<!-- limits -->\n<!-- end " +
		"of limits -->\n"
	path := filepath.Join(t.TempDir(), "document.md")
	if err := os.WriteFile(path, []byte(document), 0o644); err != nil {
		t.Fatal(err)
	}
	for section, text := range map[string]string{"baseline": "new\n", "limits": "more\n"} {
		if err := scale.RewriteSection(path, section, text); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("old\nlines\n", "new\n", "<!-- limits -->\n", "<!-- limits -->\nmore\n").
		Replace(document)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if err := scale.RewriteSection(path, "unknown", "text"); err == nil {
		t.Error("a section that does not exist was rewritten")
	}
}

func TestCreationReport(t *testing.T) {
	round := func(statefulSet, nodeSet float64) scale.CreationRound {
		result := func(seconds float64) scale.Result {
			return scale.Result{Pods: 100, Created: seconds, Ready: 2 * seconds, Settled: 3 * seconds, Gone: seconds}
		}
		return scale.CreationRound{StatefulSet: result(statefulSet), NodeSet: result(nodeSet)}
	}
	report := scale.CreationReport{Kubernetes: "v1.36.3", Cores: 2, Nodes: 110, Rounds: []scale.CreationRound{
		round(10, 12), round(8, 12), round(10, 11),
	}}
	for _, want := range []string{
		"| StatefulSet | 100 | 3 | 10.0 (8.0 to 10.0) | 20.0 (16.0 to 20.0) | 30.0 (24.0 to 30.0) | 10.0 (8.0 to 10.0) |\n",
		"| ratio | 100 | 3 | 1.20 (1.10 to 1.50) | 1.20 (1.10 to 1.50) | 1.20 (1.10 to 1.50) | 1.20 (1.10 to 1.50) |\n",
	} {
		if got := report.Markdown(); !strings.Contains(got, want) {
			t.Errorf("the report lacks %q:\n%s", want, got)
		}
	}
}

func TestCheckCosts(t *testing.T) {
	step := func(creates, status, updates int) scale.Step {
		return scale.Step{SlurmUpdates: updates, Writes: []scale.Writes{
			{User: scale.OperatorUser, Verb: "create", Resource: "pods", Requests: creates},
			{User: scale.OperatorUser, Verb: "patch", Resource: "pods/status", Requests: status},
			{User: "kwok", Verb: "patch", Resource: "pods/status", Requests: 1000},
		}}
	}
	within := scale.NodeSetResult{NodeSet: scale.Result{Pods: 100}, Creation: step(105, 130, 2), ScaleIn: step(0, 0, 1)}
	for name, test := range map[string]struct {
		change func(*scale.NodeSetResult)
		want   string
	}{
		"within the bounds": {change: func(*scale.NodeSetResult) {}},
		"a second write for each pod": {
			change: func(r *scale.NodeSetResult) { r.Creation = step(200, 130, 2) },
			want:   "writes while creating: 200, at most 115 are allowed for 100 pods",
		},
		"a second status for each pod": {
			change: func(r *scale.NodeSetResult) { r.Creation = step(100, 200, 2) },
			want:   "writes of status while creating: 200, at most 140 are allowed for 100 pods",
		},
		"an update of each node in Slurm": {
			change: func(r *scale.NodeSetResult) { r.Creation = step(100, 100, 100) },
			want:   "updates of Slurm while creating: 100, at most 12 are allowed for 100 pods",
		},
		"a drain of each node": {
			change: func(r *scale.NodeSetResult) { r.ScaleIn = step(0, 0, 100) },
			want:   "updates of Slurm while scaling in: 100, at most 10 are allowed for 100 pods",
		},
		"a write when idle": {
			change: func(r *scale.NodeSetResult) { r.Idle.Writes = 20 },
			want:   "writes a minute while idle: 20, at most 0 are allowed for 100 pods",
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := within
			test.change(&result)
			got := ""
			if err := result.CheckCosts(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
