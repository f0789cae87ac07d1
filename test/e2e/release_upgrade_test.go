//go:build e2e

package e2e_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/hack/release/build"
	"github.com/slurm-operator/slurm-operator/test/document"
	"github.com/slurm-operator/slurm-operator/test/release"
)

var previous = flag.String("previous", "",
	"the tag or commit that TestReleaseUpgrade upgrades from (default the newest tag before HEAD, or HEAD^ without one)")

// TestReleaseUpgrade installs the previous release from a registry with the commands of its own quickstart, and
// upgrades to a release of this checkout with those of docs/installation.md, while users submit jobs. A new operator
// replaces no pods but those of slurmrestd and, after their jobs, of nodes; so does a rollback of the operator. A new
// cluster chart replaces all of them.
func TestReleaseUpgrade(t *testing.T) {
	registry := startRegistry(t)
	old, readme := publishPrevious(t, registry)
	if err := images.Build(t.Context(), t.Output(), images.Options{}); err != nil { // the previous release had its own
		t.Fatal(err)
	}
	current := publishRelease(t, registry, "v0.0.2-e2e")
	_, installation := document.Read(t, "docs/installation.md")
	upgrade := strings.Split(document.ShellBlocks(installation, "Upgrade")[0], "\n")
	if len(upgrade) != 3 {
		t.Fatalf("the documentation upgrades with three commands, not %q", upgrade)
	}
	removeEverything(t)
	t.Cleanup(func() { removeEverything(t) })
	installRelease(t, old, readme,
		" --set=accounting.enabled=true,mariadb.enabled=true,nodesets.worker.replicas=3")
	becomesReady(t, clusterNamespace, 3*time.Minute, "accounting/slurm", "nodeset/worker")

	cluster := &slurmCluster{namespace: clusterNamespace, operator: operatorNamespace, version: newRelease}
	jobs := cluster.submitJobs(t, "release", "worker")
	running := cluster.startJob(t, "--mem=100")
	waiting := cluster.queueJob(t, "--mem=100", "--dependency=afterok:"+running)
	node := cluster.batchHost(t, running)
	before := cluster.containers(t, node)
	operatorIs := func(release build.Release) {
		t.Helper()
		cluster.waitForImage(t, "slurmrestd", imageOf(t, release, "slurm-operator"))
		becomesReady(t, clusterNamespace, 3*time.Minute, "controller.slinky.slurm.net/slurm", "accounting/slurm",
			"restapi/slurm", "loginset/login")
		if after := cluster.containers(t, node); after != before {
			t.Errorf("the operator has replaced or restarted containers: before\n%s\nafter\n%s", before, after)
		}
		cluster.keepsJobs(t, running, waiting)
	}

	for _, command := range upgrade[:2] {
		t.Log(runWithRelease(t, current, command))
	}
	operatorIs(current)
	operatorNamespace.MustHelm(t, "rollback", "slurm-operator", "--wait", "--timeout=10m")
	operatorIs(old)
	t.Log(runWithRelease(t, current, upgrade[1]))
	operatorIs(current)

	jobs.readAccepted(t) // the stream ends with the login pod; later jobs are found in accounting
	t.Log(runWithRelease(t, current, upgrade[2]))
	for _, daemon := range []string{"slurmdbd", "slurmctld", "slurmrestd", "login"} {
		cluster.waitForImage(t, daemon, imageOf(t, current, daemon))
	}
	cluster.keepsJobs(t, running, waiting)
	cluster.finishJob(t, running)
	cluster.waitForImage(t, "slurmd", imageOf(t, current, "slurmd"))
	becomesReady(t, clusterNamespace, 3*time.Minute, "nodeset/worker")
	jobs.checkAllCompleted(t)
	cluster.namespace.Eventually(t, time.Minute, "completion of the pending job", func(ctx context.Context) error {
		return cluster.jobIs(ctx, waiting, "JobState=COMPLETED", "Restarts=0")
	})
}

// publishPrevious builds the previous release with the code of its own checkout, publishes it, and returns it and its
// README.
func publishPrevious(t *testing.T, registry string) (published build.Release, readme string) {
	t.Helper()
	root, _ := document.Read(t, "README.md")
	dir, out := filepath.Join(t.TempDir(), "checkout"), t.TempDir()
	run := func(dir string, words ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), words[0], words[1:]...)
		command.Dir, command.Stderr = dir, t.Output()
		printed, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v", strings.Join(words, " "), err)
		}
		return strings.TrimSpace(string(printed))
	}
	newest, _, _ := strings.Cut(run(root, "git", "tag", "--merged=HEAD^", "--sort=-version:refname"), "\n")
	from := run(root, "git", "rev-parse", cmp.Or(*previous, newest, "HEAD^")+"^{commit}")
	run(root, "git", "clone", "--quiet", "--shared", "--no-checkout", root, dir)
	run(dir, "git", "checkout", "--quiet", "--detach", from)
	run(dir, "go", "run", "./hack/release", "build", "-version", "v0.0.1-e2e",
		"-registry", registry+"/slurm-operator", "-out", out, "-architectures", runtime.GOARCH)
	if err := release.NewSigner(t).Publish(t.Context(), out, release.Helm(t), t.Output()); err != nil {
		t.Fatal(err)
	}
	published, err := build.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("upgrade from commit %s", published.Commit)
	return published, string(text)
}

// containers returns a list of the containers that a new operator must not replace: those of slurmctld, slurmdbd and
// its database, the login pod, and a node with a job. It has the identity of their pods, and how often they were
// restarted.
func (c *slurmCluster) containers(t *testing.T, node string) string {
	t.Helper()
	const format = "--output=jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} " +
		"{range .status['initContainerStatuses','containerStatuses'][*]}{.name}:{.restartCount} {end}{\"\\n\"}{end}"
	services := c.namespace.MustRun(t, "get", "pods", "--sort-by=metadata.name", format,
		"--selector=app.kubernetes.io/name notin (slurmrestd, slurmd)")
	return services + c.namespace.MustRun(t, "get", "pods", "--field-selector=metadata.name="+node, format)
}

// waitForImage waits until all pods of a daemon have a container with an image, and are ready.
func (c *slurmCluster) waitForImage(t *testing.T, daemon, image string) {
	t.Helper()
	c.namespace.Eventually(t, 5*time.Minute, "pods of "+daemon+" with "+image, func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/name="+daemon,
			"--output=jsonpath={range .items[*]}{.metadata.deletionTimestamp} {.status.conditions[?(@.type=='Ready')].status} "+
				"{.spec['initContainers','containers'][*].image}{\"\\n\"}{end}")
		if err != nil {
			return err
		}
		pods := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		for _, pod := range pods {
			if !strings.HasPrefix(pod, " True ") || !strings.Contains(pod, image) {
				return fmt.Errorf("there are %q", pods)
			}
		}
		return nil
	})
}

// imageOf returns the part of an image's reference that only this release has.
func imageOf(t *testing.T, release build.Release, name string) string {
	t.Helper()
	for _, image := range release.Images {
		if image.Name == name && name == "slurm-operator" {
			return image.Digest.String()
		}
		if image.Name == name {
			return "/" + name + ":" + image.Tag
		}
	}
	t.Fatalf("release %s has no image %s", release.Version, name)
	return ""
}
