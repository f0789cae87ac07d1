//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMoveInFromBareMetal checks that nodes of the operator join a slurmctld that it does not run, and that this
// slurmctld moves into Kubernetes while jobs run, with the commands of docs/migrate.md.
func TestMoveInFromBareMetal(t *testing.T) {
	installPlugin(t)
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			outside := startSmoke(t, "baremetal", version)
			c := &slurmCluster{namespace: outside.namespace, operator: operator, version: version}
			t.Run("nodes join", c.joinsExternalSlurmctld)
			t.Run("kubectl slurm asks the external slurmctld", c.isAskedFromSlurmd)
			t.Run("slurmctld moves", c.movesSlurmctld)
		})
	}
}

func (c *slurmCluster) joinsExternalSlurmctld(t *testing.T) {
	c.namespace.ApplyTemplates(t, manifests, "baremetal/cluster.yaml", smokeSettings{Version: c.version})
	becomesReady(t, c.namespace, 4*time.Minute, "accounting/slurm", "controller.slinky.slurm.net/slurm", "restapi/slurm",
		"nodeset/gpu")
	c.namespace.Eventually(t, time.Minute, "four idle nodes", func(ctx context.Context) error {
		return c.sinfoShows(ctx, "all* idle 4")
	})
}

// isAskedFromSlurmd checks that the plugin runs Slurm's commands in a slurmd pod: slurmctld has no pod of the operator,
// and the cluster has no LoginSet.
func (c *slurmCluster) isAskedFromSlurmd(t *testing.T) {
	plugin := pluginCluster{&nodeSet{slurmCluster: c}}
	plugin.shows(t, []string{"--", "scontrol", "ping"}, "is UP")
	plugin.shows(t, []string{"--", "hostname"}, "gpu-")
	plugin.shows(t, []string{"nodes"}, "gpu-0", "IDLE", "slurmd-0")
	plugin.shows(t, []string{"top", "nodes"}, "gpu-0", "LOAD")
	plugin.shows(t, []string{"drain", "gpu-1", "--reason=broken fan"}, "drained 1 node: gpu-1")
	plugin.shows(t, []string{"undrain", "gpu-1"}, "undrained 1 node: gpu-1")
}

func (c *slurmCluster) movesSlurmctld(t *testing.T) {
	// The old nodes could not resolve the new name of slurmctld.
	c.namespace.MustRun(t, "scale", "statefulset/slurmd", "--replicas=0")
	for _, node := range []string{"slurmd-0", "slurmd-1"} {
		c.namespace.MustRun(t, "wait", "pod/"+node, "--for=delete", "--timeout=10m")
		if _, err := c.login(t.Context(), "scontrol", "delete", "nodename="+node); err != nil {
			t.Fatal(err)
		}
	}
	long := c.startJob(t, "--nodelist=gpu-0", "--mem=64M")
	jobs := c.submitJobs(t, "baremetal", "all")
	away := c.watchSlurmctld(t)

	shell := c.shellFor(t, "docs/backup.md")
	c.saveOldState(t, filepath.Join(shell.directory, "state.tar"))
	shell.runSection(t, "Fill the volume")
	// The old name of slurmctld leads to the new one.
	c.namespace.MustRun(t, "patch", "service/slurmctld-0", "--type=merge", "--patch", `{"spec":{"selector":{
		"statefulset.kubernetes.io/pod-name":"slurm-controller-0"}}}`)
	moving := c.shellFor(t, "docs/migrate.md")
	moving.runSection(t, "Move slurmctld")
	if err := c.jobIs(t.Context(), long, "JobState=RUNNING", "Restarts=0"); err != nil {
		t.Error(err)
	}
	c.namespace.Eventually(t, 3*time.Minute, "the replacement of the idle pod", func(ctx context.Context) error {
		return c.connectsTo(ctx, "gpu-1", "slurm-controller-0")
	})
	if err := c.connectsTo(t.Context(), "gpu-0", "slurm-controller-0"); err == nil {
		t.Error("the pod with the long job was replaced")
	}
	jobs.stop(t)
	c.finishJob(t, long)
	jobs.checkAllCompleted(t)
	becomesReady(t, c.namespace, 4*time.Minute, "nodeset/gpu")
	if out, err := c.login(t.Context(), "srun", "--nodes=2", "--mem=64M", "hostname"); err != nil {
		t.Errorf("srun printed %q: %v", out, err)
	}
	t.Logf("%s: slurmctld did not answer for %.1f s at most, with the copy of its state", c.version, away().Seconds())
}

// saveOldState stops the old slurmctld and saves its state to a file.
func (c *slurmCluster) saveOldState(t *testing.T, file string) {
	t.Helper()
	c.namespace.MustRun(t, "scale", "statefulset/slurmctld", "--replicas=0")
	c.namespace.MustRun(t, "wait", "pod/slurmctld-0", "--for=delete", "--timeout=10m")
	c.namespace.Apply(t, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "old-disk"}, "spec": {
		"securityContext": {"runAsUser": 64030, "fsGroup": 64030},
		"containers": [{"name": "tar", "image": %q, "command": ["sleep", "infinity"],
			"volumeMounts": [{"name": "state", "mountPath": "/state"}]}],
		"volumes": [{"name": "state", "persistentVolumeClaim": {"claimName": "state-slurmctld-0"}}]}}`,
		smokeSettings{}.Image("slurmctld", c.version)))
	c.namespace.MustRun(t, "wait", "pod/old-disk", "--for=condition=Ready", "--timeout=10m")
	content := c.namespace.MustRun(t, "exec", "old-disk", "--", "sh", "-c",
		"cd /state && tar --create --exclude=lost+found *")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c.namespace.MustRun(t, "delete", "pod/old-disk", "--grace-period=1")
}

// connectsTo returns an error unless a slurmd pod runs and gets its configuration from a slurmctld.
func (c *slurmCluster) connectsTo(ctx context.Context, pod, slurmctld string) error {
	out, err := c.namespace.Run(ctx, "get", "pod/"+pod, "--output=jsonpath={.spec.containers[0].args} {.status.phase}")
	if err == nil && (!strings.Contains(out, slurmctld+":6817") || !strings.HasSuffix(out, "Running")) {
		err = fmt.Errorf("pod %s has %s", pod, out)
	}
	return err
}
