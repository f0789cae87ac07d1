//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestChartUpgrades checks that a running job survives when the charts are upgraded from those of the previous commit,
// rolled back, broken and uninstalled.
func TestChartUpgrades(t *testing.T) {
	removeEverything(t)
	cluster := previousCharts(t).install(t)
	job := cluster.startJob(t, "--mem=100")
	slurmctld := cluster.slurmctldStart(t)
	unharmed := func() {
		t.Helper()
		cluster.namespace.Eventually(t, time.Minute, "the job", func(ctx context.Context) error {
			return cluster.jobIs(ctx, job, "JobState=RUNNING", "Restarts=0")
		})
		if now := cluster.slurmctldStart(t); now != slurmctld {
			t.Errorf("slurmctld's container started at %s, and now at %s", slurmctld, now)
		}
	}
	t.Run("upgrade", cluster.isUpgraded)
	unharmed()
	t.Run("rollback", cluster.isRolledBack)
	unharmed()
	t.Run("unused children are deleted", cluster.deletesUnusedChildren)
	unharmed()
	t.Run("a dead webhook blocks nothing (I15)", cluster.worksWithoutWebhook)
	unharmed()
	t.Run("the operator is uninstalled and reinstalled", cluster.worksWithoutOperator)
	unharmed()
	t.Run("slurmctld is restarted on demand", cluster.isRestarted)
	slurmctld = cluster.slurmctldStart(t)
	unharmed()
	cluster.finishJob(t, job)
	removeEverything(t)
}

func (c *slurmCluster) isUpgraded(t *testing.T) {
	current := helmCharts(".")
	current.installCRDs(t)
	// Another image: both Deployments are rolled out, and slurmctld's helper gets the new image too.
	image := "dev@" + c.operatorImageDigest(t)
	current.installOperator(t, "--set=image.tag="+image)
	c.namespace.Eventually(t, time.Minute, "the new image in the template of slurmctld's helper",
		func(ctx context.Context) error {
			out, err := c.namespace.Run(ctx, "get", "statefulset/slurm-controller",
				"--output=jsonpath={.spec.template.spec.initContainers[0].image}")
			if err == nil && !strings.HasSuffix(out, image) {
				err = fmt.Errorf("it has %s", out)
			}
			return err
		})
	current.installSlurm(t, "--set=partitions.debug.config=State=UP",
		`--set=configFiles.cgroup\.conf=CgroupPlugin=disabled`)
	c.namespace.Eventually(t, time.Minute, "the new partition",
		func(ctx context.Context) error { return c.partitions(ctx, "worker debug") })
	c.waitForWebhook(t)
}

// operatorImageDigest returns the digest of the operator's image: another reference to the same image.
func (c *slurmCluster) operatorImageDigest(t *testing.T) string {
	t.Helper()
	id := c.operator.MustRun(t, "get", "pods", "--selector=app.kubernetes.io/component=operator",
		"--output=jsonpath={.items[0].status.containerStatuses[0].imageID}")
	_, digest, found := strings.Cut(id, "@")
	if !found {
		t.Fatalf("the operator's image is %q", id)
	}
	return digest
}

// waitForWebhook waits until the webhook refuses an invalid change. While the API server does not trust its
// certificate, everything is accepted.
func (c *slurmCluster) waitForWebhook(t *testing.T) {
	t.Helper()
	c.namespace.Eventually(t, time.Minute, "a refusal", func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "patch", "controller.slinky.slurm.net/slurm", "--type=merge",
			"--patch={\"spec\":{\"extraConf\":\"ClusterName=other\"}}", "--dry-run=server")
		if err == nil {
			return fmt.Errorf("it was accepted: %s", out)
		}
		if !strings.Contains(err.Error(), "the operator sets this key") {
			return err
		}
		return nil
	})
}

func (c *slurmCluster) isRestarted(t *testing.T) {
	before := c.slurmctldStart(t)
	c.namespace.MustRun(t, "rollout", "restart", "statefulset/slurm-controller")
	c.namespace.Eventually(t, 2*time.Minute, "another slurmctld", func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "get", "pod/slurm-controller-0", "--output=jsonpath={.metadata.uid}")
		if err == nil && strings.HasPrefix(before, out) {
			err = errors.New("it is still the old pod")
		}
		return err
	})
	becomesReady(t, c.namespace, 2*time.Minute, "controller.slinky.slurm.net/slurm")
}

func (c *slurmCluster) isRolledBack(t *testing.T) {
	c.namespace.MustHelm(t, "rollback", "slurm")
	c.operator.MustHelm(t, "rollback", "slurm-operator", "--wait", "--timeout=10m")
	c.namespace.Eventually(t, time.Minute, "the old partitions",
		func(ctx context.Context) error { return c.partitions(ctx, "worker") })
}

func (c *slurmCluster) partitions(ctx context.Context, want string) error {
	out, err := c.login(ctx, "sinfo", "--noheader", "--summarize", "--format=%R")
	if got := strings.Join(strings.Fields(out), " "); err == nil && got != want {
		err = fmt.Errorf("the partitions are %q, not %q", got, want)
	}
	return err
}

// I15: a dead webhook must not block scheduling of pods or deletion of objects.
func (c *slurmCluster) worksWithoutWebhook(t *testing.T) {
	c.operator.MustRun(t, "scale", "deployment/slurm-operator-webhook", "--replicas=0")
	c.operator.Eventually(t, time.Minute, "no webhook pods", func(ctx context.Context) error {
		out, err := c.operator.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/component=webhook",
			"--output=name")
		if err == nil && out != "" {
			err = fmt.Errorf("there is %s", out)
		}
		return err
	})
	c.namespace.MustRun(t, "scale", "nodeset/worker", "--replicas=2")
	c.namespace.Eventually(t, time.Minute, "a second node",
		func(ctx context.Context) error { return c.sinfoShows(ctx, "worker* idle 1") })
	c.namespace.Apply(t,
		[]byte(`{apiVersion: slinky.slurm.net/v1beta1, kind: Token, metadata: {name: short}, spec: {username: root, jwtKeyRef: {name: slurm-auth-jwt, key: jwt_hs256.key}}}`))
	becomesReady(t, c.namespace, time.Minute, "token/short")
	c.namespace.MustRun(t, "delete", "token/short", "--timeout=10m")
	c.namespace.MustRun(t, "scale", "nodeset/worker", "--replicas=1")
	c.namespace.Eventually(t, time.Minute, "one node", func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/name=slurmd", "--output=name")
		if err == nil && strings.TrimSpace(out) != "pod/worker-0" {
			err = fmt.Errorf("there are %q", out)
		}
		return err
	})
	c.operator.MustRun(t, "scale", "deployment/slurm-operator-webhook", "--replicas=2")
	c.operator.MustRun(t, "rollout", "status", "deployment/slurm-operator-webhook", "--timeout=10m")
	c.waitForWebhook(t)
}

func (c *slurmCluster) worksWithoutOperator(t *testing.T) {
	c.operator.MustHelm(t, "uninstall", "slurm-operator", "--wait", "--timeout=10m")
	out, err := c.namespace.Run(t.Context(), "get", "nodeset/worker", "--output=jsonpath={.metadata.finalizers}")
	if err != nil || out != "" {
		t.Errorf("after the operator was uninstalled, the NodeSet's finalizers are %q: %v", out, err)
	}
	if out, err := c.login(t.Context(), "srun", "--mem=100", "hostname"); err != nil ||
		strings.TrimSpace(out) != "worker-0" {
		t.Errorf("without the operator, srun printed %q: %v", out, err)
	}
	helmCharts(".").installOperator(t)
	becomesReady(t, c.namespace, time.Minute, "controller.slinky.slurm.net/slurm", "nodeset/worker")
	c.waitForWebhook(t)
	c.namespace.Eventually(t, time.Minute, "the finalizer", func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "get", "nodeset/worker", "--output=jsonpath={.metadata.finalizers}")
		if err == nil && out == "" {
			err = errors.New("there is none")
		}
		return err
	})
}

// deletesUnusedChildren checks that children are deleted when a changed spec no longer needs them.
func (c *slurmCluster) deletesUnusedChildren(t *testing.T) {
	exist := func(ctx context.Context, want bool, objects ...string) error {
		for _, object := range objects {
			out, err := c.namespace.Run(ctx, "get", object, "--ignore-not-found", "--output=name")
			if err != nil {
				return err
			}
			if exists := out != ""; exists != want {
				return fmt.Errorf("%s exists: %t", object, exists)
			}
		}
		return nil
	}
	c.namespace.Apply(t, []byte(`
{apiVersion: v1, kind: Secret, metadata: {name: moved-password}, stringData: {password: secret}}
---
{apiVersion: slinky.slurm.net/v1beta1, kind: Accounting, metadata: {name: moved}, spec: {
  storageConfig: {host: nowhere, username: slurm, passwordKeyRef: {name: moved-password, key: password}}}}
`))
	for object, test := range map[string]struct {
		before, after string
		child         []string
	}{
		"restapi/slurm": {`{"replicas":2}`, `{"replicas":1}`, []string{"poddisruptionbudget/slurm-restapi"}},
		"accounting/moved": {
			`{}`, `{"external":true,"externalConfig":{"host":"slurmdbd.example.com"},"slurmKeyRef":{"name":"slurm-auth-slurm","key":"slurm.key"}}`,
			[]string{"statefulset/moved-accounting", "service/moved-accounting", "secret/moved-accounting"},
		},
	} {
		patch := func(spec string) {
			c.namespace.MustRun(t, "patch", object, "--type=merge", `--patch={"spec":`+spec+`}`)
		}
		patch(test.before)
		c.namespace.Eventually(t, time.Minute, "children of "+object,
			func(ctx context.Context) error { return exist(ctx, true, test.child...) })
		patch(test.after)
		c.namespace.Eventually(t, time.Minute, "deletion of children of "+object,
			func(ctx context.Context) error { return exist(ctx, false, test.child...) })
	}
	c.namespace.MustRun(t, "delete", "accounting/moved", "--timeout=10m")
}
