//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// TestMoveIn checks that the manifests and images of another operator's users work.
func TestMoveIn(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			addOtherImages(t, version)
			cluster := moveIn(t, operator, version)
			t.Run("the daemons run as the user of the images", cluster.hasUserOfImages)
			t.Run("users work", cluster.runsJobsOnOtherImages)
			t.Run("arguments are added", cluster.addsArguments)
			t.Run("an image with another user is refused", cluster.refusesAnotherUser)
		})
	}
}

// addOtherImages adds images of all daemons as somebody else may have built them.
func addOtherImages(t *testing.T, version string) {
	t.Helper()
	for _, role := range []string{"slurmctld", "slurmdbd", "slurmrestd", "slurmd", "login"} {
		if _, err := images.AddOther(t.Context(), role, version); err != nil {
			t.Fatal(err)
		}
	}
}

// moveIn applies the manifests of a user.
func moveIn(t *testing.T, operator kube.Namespace, version string) *slurmCluster {
	t.Helper()
	private, authorized := sshKeyPair(t)
	cluster := &slurmCluster{
		namespace: kube.NewNamespace(t, "movein-"+strings.ReplaceAll(version, ".", "-")), operator: operator,
		version: version, password: rand.Text(), sshKey: private,
	}
	values := settings{smokeSettings: smokeSettings{Version: version}, AuthorizedKey: authorized}
	key := make([]byte, 1024)
	_, _ = rand.Read(key) // never fails
	cluster.namespace.CreateSecret(t, "mariadb", map[string][]byte{"password": []byte(cluster.password)})
	cluster.namespace.CreateSecret(t, "slurm-auth-slurm", map[string][]byte{"slurm.key": key})
	cluster.namespace.CreateSecret(t, "slurm-auth-jwths256", map[string][]byte{"jwt_hs256.key": bytes.Clone(key[:32])})
	cluster.namespace.ApplyTemplates(t, manifests, "cluster/database.yaml", values)
	started := time.Now()
	cluster.namespace.ApplyTemplates(t, manifests, "movein/cluster.yaml", values)
	becomesReady(t, cluster.namespace, 6*time.Minute,
		"accounting/slurm", "controller.slinky.slurm.net/slurm", "restapi/slurm", "loginset/login",
		"nodeset/slurm-worker-gpu")
	t.Logf("%s: all is ready %.1f s after it was applied", version, time.Since(started).Seconds())
	return cluster
}

func (c *slurmCluster) hasUserOfImages(t *testing.T) {
	for _, object := range []string{"accounting/slurm", "controller.slinky.slurm.net/slurm"} {
		user, err := c.namespace.Run(t.Context(), "get", object, "--output=jsonpath={.status.slurmUser.uid}")
		if err != nil || user != "401" {
			t.Errorf("%s has the user %q: %v", object, user, err)
		}
	}
	out, err := c.namespace.Run(t.Context(), "exec", "slurm-controller-0", "--container=slurmctld", "--",
		"sh", "-c", "stat --format=%U $(dirname $(grep --files-with-matches --line-regexp slurmctld /proc/[0-9]*/comm))")
	if err != nil || strings.TrimSpace(out) != "slurm" {
		t.Errorf("slurmctld runs as %q: %v", out, err)
	}
	for _, container := range []string{"pod/slurm-controller-0", "pod/slurm-worker-gpu-0", "deployment/login"} {
		out, err := c.namespace.Run(t.Context(), "exec", container, "--", "sh", "-c",
			"cat /proc/[0-9]*/status 2>/dev/null | grep '^State:.Z' || true")
		if err != nil || out != "" {
			t.Errorf("%s has zombies: %q, %v", container, out, err)
		}
	}
}

func (c *slurmCluster) runsJobsOnOtherImages(t *testing.T) {
	if out, err := c.login(t.Context(), "sinfo", "--noheader", "--partition=all", "--format=%N"); err != nil ||
		strings.TrimSpace(out) != "gpu-[0-1]" {
		t.Errorf("the partition of extraConf has the nodes %q: %v", out, err)
	}
	out, err := c.login(t.Context(), "srun", "--partition=gpu", "--nodes=2", "hostname")
	hosts := strings.Fields(out)
	slices.Sort(hosts)
	if err != nil || !slices.Equal(hosts, []string{"gpu-0", "gpu-1"}) {
		t.Fatalf("srun printed %q: %v", out, err)
	}
	c.namespace.Eventually(t, time.Minute, "the job in the accounting", func(ctx context.Context) error {
		out, err := c.login(ctx, "sacct", "--allusers", "--noheader", "--allocations", "--format=State,NNodes")
		if err == nil && strings.Join(strings.Fields(out), " ") != "COMPLETED 2" {
			err = fmt.Errorf("sacct prints %q", out)
		}
		return err
	})
}

func (c *slurmCluster) addsArguments(t *testing.T) {
	out, err := c.namespace.Run(t.Context(), "exec", "slurm-worker-gpu-0", "--container=slurmd", "--", "sh", "-c",
		`tr '\0' ' ' <$(dirname $(grep --files-with-matches --line-regexp slurmd /proc/[0-9]*/comm | head --lines=1))/cmdline`)
	if err != nil || !strings.Contains(out, "-N gpu-0 -v") {
		t.Errorf("slurmd runs as %q: %v", out, err)
	}
}

// refusesAnotherUser checks that slurmctld keeps its image if a new one has another user, whom no slurmd would trust.
func (c *slurmCluster) refusesAnotherUser(t *testing.T) {
	patch := fmt.Sprintf(`{"spec":{"slurmctld":{"image":%q}}}`, smokeSettings{}.Image("slurmctld", c.version))
	if _, err := c.namespace.Run(t.Context(), "patch", "controller.slinky.slurm.net/slurm", "--type=merge", "--patch",
		patch); err != nil {
		t.Fatal(err)
	}
	c.namespace.Eventually(t, 2*time.Minute, "the refusal", func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "get", "controller.slinky.slurm.net/slurm", "-o",
			`jsonpath={.status.conditions[?(@.type=="ConfigurationApplied")].message}`)
		if err == nil && !strings.Contains(out, "the image's user slurm has the ID 64030") {
			err = fmt.Errorf("the message is %q", out)
		}
		return err
	})
	if out, err := c.login(t.Context(), "srun", "--partition=gpu", "hostname"); err != nil {
		t.Errorf("srun printed %q: %v", out, err)
	}
}
