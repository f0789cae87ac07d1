//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/repo"
)

// TestPlugin runs every command of kubectl slurm against a cluster, as an administrator and as a user with few rights.
func TestPlugin(t *testing.T) {
	installPlugin(t)
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			cluster := pluginCluster{startNodeSet(t, operator, version)}
			t.Run("status", cluster.showsStatus)
			t.Run("nodes and jobs", cluster.showsNodesAndJobs)
			t.Run("why a job waits", cluster.explainsJob)
			t.Run("drain and undrain", cluster.drainsAndUndrains)
			t.Run("why a cordoned node takes no jobs", cluster.explainsCordon)
			t.Run("why a pod waits for its scale-in", cluster.explainsScaleIn)
			t.Run("commands in pods", cluster.runsCommands)
			t.Run("few rights", cluster.namesMissingRights)
			t.Run("completion", cluster.completes)
		})
	}
}

// installPlugin builds the plugin and puts it where kubectl finds it.
func installPlugin(t *testing.T) {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(directory, "kubectl-slurm"),
		"./cmd/kubectl-slurm")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, out)
	}
	t.Setenv("PATH", directory+string(os.PathListSeparator)+os.Getenv("PATH"))
}

type pluginCluster struct{ *nodeSet }

// command returns the command that runs the plugin through kubectl.
func (c pluginCluster) command(ctx context.Context, arguments ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "kubectl",
		append([]string{"slurm", "--namespace=" + c.namespace.Name}, arguments...)...)
}

// run runs the plugin through kubectl and returns its output, and its standard error if it fails.
func (c pluginCluster) run(ctx context.Context, input string, arguments ...string) (string, error) {
	command := c.command(ctx, arguments...)
	var out, problems bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &out, &problems
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl slurm %s: %w: %s%s", strings.Join(arguments, " "), err, &out, &problems)
	}
	return out.String(), nil
}

// shows fails the test unless the output of a command has some texts.
func (c pluginCluster) shows(t *testing.T, arguments []string, want ...string) {
	t.Helper()
	out, err := c.run(t.Context(), "", arguments...)
	if err != nil {
		t.Error(err)
		return
	}
	for _, text := range want {
		if !strings.Contains(out, text) {
			t.Errorf("kubectl slurm %s does not show %q:\n%s", strings.Join(arguments, " "), text, out)
		}
	}
}

// fails expects that a command fails with a text.
func (c pluginCluster) fails(t *testing.T, want string, arguments ...string) {
	t.Helper()
	if out, err := c.run(t.Context(), "", arguments...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("kubectl slurm %s: %v, want %q\n%s", strings.Join(arguments, " "), err, want, out)
	}
}

func (c pluginCluster) showsStatus(t *testing.T) {
	c.shows(t, []string{"status"}, "Controller/slurm", "Accounting/slurm", "RestApi/slurm", "LoginSet/login",
		"NodeSet/gpu", "4/4", "4 idle", c.version+".", "applied")
	c.shows(t, []string{"status", "slurm", "--output=wide"}, "slurm-controller-0", "TOKEN", "root")
	c.shows(t, []string{"status", "--all-namespaces", "--output=yaml"}, "namespace: "+c.namespace.Name,
		"slurmVersion: "+c.version)
	c.fails(t, "there is no Controller slrum", "status", "slrum")
	started := time.Now()
	if _, err := c.run(t.Context(), "", "--help"); err != nil {
		t.Error(err)
	}
	t.Logf("%s: --help took %d ms through kubectl", c.version, time.Since(started).Milliseconds())
}

func (c pluginCluster) showsNodesAndJobs(t *testing.T) {
	job := c.startJob(t, "--nodelist=gpu-1", "--time=30", "--job-name=plugin")
	host := c.kubernetesNodeOf(t, "gpu-1")
	out, err := c.run(t.Context(), "", "nodes", "gpu-[0-1]", "--output=json")
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Nodes []struct {
			Name, State, Pod, NodeSet, KubernetesNode, Version string
			Jobs                                               []string
		}
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || len(result.Nodes) != 2 {
		t.Fatalf("%v: %s", err, out)
	}
	busy := result.Nodes[1]
	if busy.Name != "gpu-1" || busy.Pod != "gpu-1" || busy.NodeSet != "gpu" || busy.KubernetesNode != host ||
		!strings.HasPrefix(busy.Version, c.version) || len(busy.Jobs) != 1 || busy.Jobs[0] != job {
		t.Errorf("%+v", busy)
	}
	c.shows(t, []string{"nodes"}, "gpu-0", "gpu-3", "IDLE", host)
	c.shows(t, []string{"jobs", "--output=wide"}, job, "plugin", "RUNNING", "gpu-1", host)
	c.shows(t, []string{"top"}, "CPUs", "1 running, 0 pending", "root")
	c.shows(t, []string{"top", "nodes", "--sort-by=cpu", "--limit=1", "--output=wide"}, "gpu-1", host, "and 3 more")
	c.shows(t, []string{"top", "users", "--output=yaml"}, "name: root", "runningJobs: 1")
	c.shows(t, []string{"why", job}, "runs on gpu-1 until")
	c.shows(t, []string{"why", "gpu-1"}, "gpu-1 takes jobs", job)
	c.finishJob(t, job)
	c.waitUntilAllIdle(t)
}

func (c pluginCluster) explainsJob(t *testing.T) {
	held := c.queueJob(t, "--hold")
	c.shows(t, []string{"why", held}, "is pending", "holds it", "scontrol release "+held)
	c.shows(t, []string{"--", "scancel", held})
	busy := c.startJob(t, "--nodes=4", "--exclusive", "--time=30")
	waits := c.queueJob(t, "--nodes=4", "--exclusive")
	dependent := c.queueJob(t, "--dependency=afterok:"+waits)
	for job, reason := range map[string]string{
		waits: "are in use", "job/" + dependent: "it depends on other jobs (afterok:" + waits,
	} {
		c.namespace.Eventually(t, time.Minute, "Slurm's reason for "+job, func(ctx context.Context) error {
			out, err := c.run(ctx, "", "why", job)
			if err == nil && !strings.Contains(out, reason) {
				err = fmt.Errorf("it shows %s", out)
			}
			return err
		})
	}
	c.shows(t, []string{"why", waits}, "Nodes of the partition")
	c.shows(t, []string{"--", "scancel", dependent, waits, busy})
	c.fails(t, "slurmctld has no job 999999", "why", "999999")
	c.waitUntilAllIdle(t)
}

func (c pluginCluster) drainsAndUndrains(t *testing.T) {
	c.fails(t, "--reason", "drain", "gpu-2")
	c.fails(t, "there is no node gpu-77 in Slurm; nothing was changed", "drain", "gpu-[2,77]", "--reason=broken fan")
	c.shows(t, []string{"drain", "gpu-2", "--reason=broken fan", "--dry-run"}, "would drain 1 node: gpu-2")
	if err := c.sinfoShows(t.Context(), "gpu idle 4"); err != nil {
		t.Error(err)
	}
	c.shows(t, []string{"drain", "gpu-[2-3]", "--reason=broken fan"}, "drained 2 nodes: gpu-[2-3]; reason: broken fan (")
	c.drainIs(t, "gpu-2", "broken fan (")
	c.shows(t, []string{"nodes", "--closed"}, "gpu-2", "gpu-3", "broken fan")
	c.shows(t, []string{"why", "gpu-2"}, "it is drained, not by the operator: broken fan",
		"kubectl slurm --namespace "+c.namespace.Name+" undrain gpu-2")
	c.shows(t, []string{"drain", "gpu-2", "--reason=other"}, "unchanged gpu-2: it is already drained: broken fan")
	c.shows(t, []string{"undrain", "gpu-[1-3]"}, "undrained 2 nodes: gpu-[2-3]", "unchanged gpu-1: it is not drained")
	c.waitUntilAllIdle(t)
}

func (c pluginCluster) explainsCordon(t *testing.T) {
	host := c.kubernetesNodeOf(t, "gpu-0")
	c.namespace.MustRun(t, "cordon", host)
	defer c.namespace.MustRun(t, "uncordon", host)
	c.drainIs(t, "gpu-0", "slurm-operator: Kubernetes node "+host+" is cordoned")
	c.shows(t, []string{"why", "gpu-0"}, "the operator drained it",
		"kubectl --namespace "+c.namespace.Name+" uncordon "+host)
	c.fails(t, "refused gpu-0: the operator drained it", "undrain", "gpu-0")
	c.drainIs(t, "gpu-0", "slurm-operator: Kubernetes node "+host+" is cordoned")
	c.namespace.MustRun(t, "uncordon", host)
	c.waitUntilAllIdle(t)
}

func (c pluginCluster) explainsScaleIn(t *testing.T) {
	job := c.startJob(t, "--nodes=4", "--exclusive", "--time=30")
	c.scale(t, 3)
	c.namespace.Eventually(t, time.Minute, "a pod that waits for its scale-in", func(ctx context.Context) error {
		out, err := c.run(ctx, "", "why", "gpu-3")
		for _, want := range []string{
			"its pod is to be deleted, and is kept for now", "its NodeSet needs fewer pods", "job " + job,
		} {
			if err == nil && !strings.Contains(out, want) {
				err = fmt.Errorf("it does not show %q: %s", want, out)
			}
		}
		return err
	})
	c.shows(t, []string{"status"}, "Draining", "runs job "+job)
	c.scale(t, 4)
	c.shows(t, []string{"--", "scancel", job})
	c.waitUntilAllIdle(t)
}

func (c pluginCluster) runsCommands(t *testing.T) {
	c.shows(t, []string{"--", "scontrol", "ping"}, "is UP")
	c.shows(t, []string{"exec", "--", "sinfo", "--version"}, "slurm", c.version)
	c.shows(t, []string{"ssh", "gpu-2", "--", "hostname"}, "gpu-2")
	out, err := c.run(t.Context(), "echo $((6 * 7))\n", "ssh", "gpu-2")
	if err != nil || strings.TrimSpace(out) != "42" {
		t.Errorf("a shell with input printed %q: %v", out, err)
	}
	command := c.command(t.Context(), "--", "sh", "-c", "exit 7")
	if err := command.Run(); command.ProcessState.ExitCode() != 7 {
		t.Errorf("the exit code of a command is lost: %v", err)
	}
	c.fails(t, "no slurmd pod", "ssh", "gpu-77")
}

// namesMissingRights uses the plugin as a user with the rights of the ClusterRole slurm-user, and without any.
func (c pluginCluster) namesMissingRights(t *testing.T) {
	const reader = "reader"
	c.namespace.MustRun(t, "create", "role", reader, "--verb=get,list,watch",
		"--resource=controllers.slinky.slurm.net,nodesets.slinky.slurm.net,loginsets.slinky.slurm.net,"+
			"restapis.slinky.slurm.net,accountings.slinky.slurm.net,tokens.slinky.slurm.net,pods")
	c.namespace.MustRun(t, "create", "rolebinding", reader, "--role="+reader, "--user="+reader)
	c.shows(t, []string{"--as=" + reader, "status", "--output=wide"}, "NodeSet/gpu", "slurm-controller-0")
	c.shows(t, []string{"--as=" + reader, "nodes"}, "IDLE", "note: you may not list nodes",
		"Slurm was not asked: you may not create pods/exec in the namespace "+c.namespace.Name)
	c.fails(t, "you may not create pods/exec", "--as="+reader, "jobs")
	c.fails(t, "you may not create pods/exec", "--as="+reader, "--", "scontrol", "ping")
	c.shows(t, []string{"--as=nobody", "status"}, "you may not list controllers.slinky.slurm.net",
		"ask for the ClusterRole slurm-user")
}

func (c pluginCluster) completes(t *testing.T) {
	c.shows(t, []string{"__complete", "status", ""}, "slurm\n")
	c.shows(t, []string{"__complete", "why", ""}, "gpu-0\n")
	c.shows(t, []string{"__complete", "nodes", "--nodeset", ""}, "gpu\n")
}
