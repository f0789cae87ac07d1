//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNodeSetVariants tests NodeSets that are more than a number of identical nodes.
func TestNodeSetVariants(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			cluster := startServices(t, operator, "kinds", version)
			t.Run("one pod per labelled Kubernetes node", cluster.followsLabels)
			t.Run("host network", cluster.runsOnHostNetwork)
			t.Run("PVCs survive their pods", cluster.keepsPVCs)
			t.Run("update in a reservation", cluster.updatesInReservation)
			t.Run("topology", cluster.setsTopology)
			t.Run("ssh requires a job", cluster.allowsSSHOnlyWithJob)
		})
	}
}

// applyNodeSet applies a NodeSet with fields of its spec, each in YAML on one line, and waits until it is ready.
func (c *slurmCluster) applyNodeSet(t *testing.T, name string, fields ...string) {
	t.Helper()
	spec := append([]string{
		"controllerRef: {name: slurm}", "oversubscribeNode: true",
		"slurmd: {image: " + smokeSettings{}.Image("slurmd", c.version) +
			", resources: {limits: {cpu: 1, memory: 256Mi}, requests: {cpu: 50m, memory: 64Mi}}}",
	}, fields...)
	c.namespace.Apply(t,
		fmt.Appendf(nil, "apiVersion: slinky.slurm.net/v1beta1\nkind: NodeSet\nmetadata: {name: %s}\nspec:\n  %s\n",
			name, strings.Join(spec, "\n  ")))
	becomesReady(t, c.namespace, 3*time.Minute, "nodeset/"+name)
}

func (c *slurmCluster) deleteNodeSet(t *testing.T, name string) {
	t.Helper()
	c.namespace.MustRun(t, "delete", "nodeset/"+name, "--timeout=10m")
}

// names waits until exactly these objects of a resource have the labels of a NodeSet.
func (c *slurmCluster) names(t *testing.T, resource, set string, want ...string) {
	t.Helper()
	c.namespace.Eventually(t, 2*time.Minute, fmt.Sprintf("%s %v", resource, want), func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "get", resource,
			"--selector=app.kubernetes.io/instance="+set+",app.kubernetes.io/name=slurmd",
			"--output=jsonpath={.items[*].metadata.name}")
		names := strings.Fields(out)
		if slices.Sort(names); err == nil && !slices.Equal(names, want) {
			err = fmt.Errorf("there are %v", names)
		}
		return err
	})
}

// nodeShows waits until scontrol shows a field of a Slurm node.
func (c *slurmCluster) nodeShows(t *testing.T, node, field string) {
	t.Helper()
	c.namespace.Eventually(t, time.Minute, node+" with "+field, func(ctx context.Context) error {
		out, err := c.login(ctx, "scontrol", "show", "node", node)
		if err == nil && !strings.Contains(out, field) {
			err = fmt.Errorf("scontrol shows %s", out)
		}
		return err
	})
}

func (c *slurmCluster) followsLabels(t *testing.T) {
	nodes := strings.Fields(c.namespace.MustRun(t, "get", "nodes", "--output=jsonpath={.items[*].metadata.name}"))
	first, second := nodes[0], nodes[1]
	const label = "e2e.example.com/slurm"
	defer func() {
		_, err := c.namespace.Run(context.WithoutCancel(t.Context()), "label", "nodes", "--all", label+"-")
		if err != nil {
			t.Error(err)
		}
	}()
	c.namespace.MustRun(t, "label", "node", first, label+"=yes")
	c.applyNodeSet(t, "site", "scalingMode: DaemonSet", "template: {spec: {nodeSelector: {"+label+": 'yes'}}}")
	c.names(t, "pods", "site", "site-"+first)
	c.namespace.MustRun(t, "label", "node", second, label+"=yes")
	labelled := time.Now()
	c.names(t, "pods", "site", "site-"+first, "site-"+second)
	c.nodeShows(t, second, "State=IDLE")
	t.Logf("%s: a Kubernetes node accepts jobs %.1f s after it was labelled", c.version, time.Since(labelled).Seconds())

	job := c.startJob(t, "--nodelist="+second)
	c.namespace.MustRun(t, "label", "node", second, label+"-")
	c.nodeShows(t, second, "Reason=slurm-operator: scale-in")
	c.names(t, "pods", "site", "site-"+first, "site-"+second)
	c.namespace.MustRun(t, "exec", "site-"+second, "--", "touch", "/tmp/end-"+job)
	c.names(t, "pods", "site", "site-"+first)
	if err := c.jobIs(t.Context(), job, "JobState=COMPLETED", "Restarts=0"); err != nil {
		t.Error(err)
	}
	c.deleteNodeSet(t, "site")
}

func (c *slurmCluster) keepsPVCs(t *testing.T) {
	c.applyNodeSet(t, "disk", "replicas: 2",
		"persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Retain}",
		"volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: "+
			"{storage: 16Mi}}}}]",
		"template: {spec: {containers: [{name: slurmd, volumeMounts: [{name: data, mountPath: /data}]}]}}")
	c.names(t, "persistentvolumeclaims", "disk", "data-disk-0", "data-disk-1")
	c.namespace.MustRun(t, "exec", "disk-0", "--", "sh", "-c", "echo kept >/data/file")
	before := c.namespace.MustRun(t, "get", "pod", "disk-0", "--output=jsonpath={.metadata.uid}")
	c.namespace.MustRun(t, "patch", "nodeset/disk", "--type=merge", "--patch", `{"spec":{"extraConf":"Weight=3"}}`)
	c.namespace.Eventually(t, 2*time.Minute, "the file in a new pod", func(ctx context.Context) error {
		uid, err := c.namespace.Run(ctx, "get", "pod", "disk-0", "--output=jsonpath={.metadata.uid}")
		if err == nil && uid == before {
			err = errors.New("it is still the old pod")
		}
		if err != nil {
			return err
		}
		out, err := c.namespace.Exec(ctx, "disk-0", "cat", "/data/file")
		if err == nil && out != "kept\n" {
			err = fmt.Errorf("it has %q", out)
		}
		return err
	})
	becomesReady(t, c.namespace, 2*time.Minute, "nodeset/disk")
	c.namespace.MustRun(t, "scale", "nodeset/disk", "--replicas=1")
	c.names(t, "pods", "disk", "disk-0")
	c.names(t, "persistentvolumeclaims", "disk", "data-disk-0")
	c.deleteNodeSet(t, "disk")
	c.names(t, "persistentvolumeclaims", "disk", "data-disk-0")
}

// No pod is replaced before the window opens, and no job that would run into the window starts once it is reserved.
func (c *slurmCluster) updatesInReservation(t *testing.T) {
	start := time.Now().Add(75 * time.Second).UTC().Truncate(time.Second)
	c.applyNodeSet(t, "later", "replicas: 2",
		"updateStrategy: {type: ScheduledUpdate, scheduledUpdate: {startTime: "+start.Format(
			time.RFC3339)+", duration: 10m}}")
	before := c.namespace.MustRun(t, "get", "pods", "--selector=app.kubernetes.io/instance=later",
		"--output=jsonpath={.items[*].metadata.uid}")
	c.namespace.MustRun(t, "patch", "nodeset/later", "--type=merge", "--patch", `{"spec":{"extraConf":"Weight=3"}}`)
	c.namespace.Eventually(t, time.Minute, "the update to wait", func(ctx context.Context) error {
		return conditionIs(ctx, c.namespace, "nodeset/later", "UpdateInProgress", "False|UpdateScheduled")
	})
	job := ""
	if c.version != "24.11" { // its REST API cannot create reservations
		c.namespace.Eventually(t, 30*time.Second, "a reservation", func(ctx context.Context) error {
			out, err := c.login(ctx, "scontrol", "show", "reservation")
			if err == nil && !strings.Contains(out, "Nodes=later-[0-1]") {
				err = fmt.Errorf("scontrol shows %q", out)
			}
			return err
		})
		out, err := c.login(t.Context(), "sbatch", "--parsable", "--time=60", "--nodelist=later-0",
			"--output=/dev/null", "--wrap=true")
		if err != nil {
			t.Fatal(err)
		}
		job = strings.TrimSpace(out)
	}
	if now := c.namespace.MustRun(t, "get", "pods", "--selector=app.kubernetes.io/instance=later",
		"--output=jsonpath={.items[*].metadata.uid}"); now != before && time.Now().Before(start) {
		t.Error("pods were replaced before the window")
	}
	if job != "" {
		if err := c.jobIs(t.Context(), job, "JobState=PENDING"); err != nil && time.Now().Before(start) {
			t.Error(err)
		}
	}
	c.namespace.Eventually(t, 3*time.Minute, "the update", func(ctx context.Context) error {
		return errors.Join(conditionIs(ctx, c.namespace, "nodeset/later", "UpdateInProgress", "False|UpToDate"),
			conditionIs(ctx, c.namespace, "nodeset/later", "Ready", "True"))
	})
	t.Logf("%s: updated %.1f s after the window opened", c.version, time.Since(start).Seconds())
	if job != "" { // the reservation is deleted after the update
		c.namespace.Eventually(t, time.Minute, "the job to run",
			func(ctx context.Context) error { return c.jobIs(ctx, job, "JobState=COMPLETED") })
	}
	c.deleteNodeSet(t, "later")
}

const topology = `
- {topology: topo-flat, cluster_default: true, flat: true}
- {topology: topo-switch, cluster_default: false, tree: {
    switches: [{switch: root, children: "s[1-2]"}, {switch: s1}, {switch: s2}]}}
`

func (c *slurmCluster) setsTopology(t *testing.T) {
	const annotation = "topology.slinky.slurm.net/spec"
	defer func() {
		if _, err := c.namespace.Run(context.WithoutCancel(t.Context()), "annotate", "nodes", "--all",
			annotation+"-"); err != nil {
			t.Error(err)
		}
	}()
	c.namespace.MustRun(t, "annotate", "nodes", "--all", annotation+"=topo-switch:s1")
	if c.version == "24.11" {
		c.applyNodeSet(t, "rack", "replicas: 1")
		c.namespace.Eventually(t, time.Minute, "UnsupportedVersion", func(ctx context.Context) error {
			return conditionIs(ctx, c.namespace, "nodeset/rack", "TopologyApplied", "False|UnsupportedVersion")
		})
		c.deleteNodeSet(t, "rack")
		return
	}
	c.namespace.MustRun(t, "create", "configmap", "topology", "--from-literal=topology.yaml="+topology)
	c.namespace.MustRun(t, "patch", "controller.slinky.slurm.net/slurm", "--type=merge", "--patch",
		`{"spec":{"configFileRefs":[{"name":"topology"}]}}`)
	c.configurationIs(t, "True|Applied")
	c.applyNodeSet(t, "rack", "replicas: 1")
	c.nodeShows(t, "rack-0", "Topology=topo-switch:s1")
	job := c.startJob(t, "--nodelist=rack-0")
	c.namespace.MustRun(t, "annotate", "nodes", "--all", "--overwrite", annotation+"=topo-switch:s2")
	changed := time.Now()
	c.nodeShows(t, "rack-0", "Topology=topo-switch:s2")
	t.Logf("%s: a changed topology annotation reaches Slurm after %.1f s", c.version, time.Since(changed).Seconds())
	c.namespace.MustRun(t, "annotate", "nodes", "--all", "--overwrite", annotation+"=topo-switch:s9")
	c.namespace.Eventually(t, time.Minute, "TopologyRefused", func(ctx context.Context) error {
		return conditionIs(ctx, c.namespace, "nodeset/rack", "TopologyApplied", "False|TopologyRefused")
	})
	c.nodeShows(t, "rack-0", "Topology=topo-switch:s2")
	c.finishJob(t, job)
	c.deleteNodeSet(t, "rack")
}
