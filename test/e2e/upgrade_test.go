//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// The upgrade is from the oldest supported release to the newest, which is as far as Slurm allows in one step.
const oldRelease, newRelease = "24.11", "26.05"

// TestSlurmUpgrade upgrades a cluster to another Slurm release while users submit jobs, in the order that Slurm
// requires: slurmdbd, slurmctld, the nodes, and then slurmrestd and the login pods. No job is lost or started twice,
// and both a job that started before the upgrade and one that was pending throughout complete.
func TestSlurmUpgrade(t *testing.T) {
	set := startUpgrade(t, startOperator(t))
	jobs := set.submitJobs(t, "upgrade", "gpu")
	running := set.startJob(t, "--partition=gpu", "--nodelist=gpu-0", "--mem=64M")
	waiting := set.queueJob(t, "--partition=gpu", "--mem=64M", "--dependency=afterok:"+running)

	set.upgrade(t, "accounting/slurm", "slurmdbd")
	set.waitForNewRelease(t, "accounting/slurm", set.slurmdbdRelease)
	set.keepsJobs(t, running, waiting)

	set.upgrade(t, "controller.slinky.slurm.net/slurm", "slurmctld")
	set.waitForNewRelease(t, "controller.slinky.slurm.net/slurm", set.slurmctldRelease)
	set.configurationIs(t, "True|Applied")
	set.keepsJobs(t, running, waiting)
	set.refusesToReturn(t)
	set.keepsJobs(t, running, waiting)

	set.upgrade(t, "nodeset/gpu", "slurmd")
	set.namespace.Eventually(t, 3*time.Minute, "the new release on all nodes except the one with the job",
		func(ctx context.Context) error {
			return set.nodeReleases(ctx, oldRelease, newRelease, newRelease, newRelease)
		})
	set.keepsJobs(t, running, waiting)
	set.finishJob(t, running)
	set.waitForNewRelease(t, "nodeset/gpu", func(ctx context.Context) (string, error) {
		return newRelease, set.nodeReleases(ctx, newRelease, newRelease, newRelease, newRelease)
	})

	set.upgrade(t, "restapi/slurm", "slurmrestd")
	set.waitForNewRelease(t, "restapi/slurm",
		func(ctx context.Context) (string, error) { return set.slurmrestdRelease(ctx, set.token(t)) })

	jobs.stop(t) // the stream runs in the login pod, which is replaced now
	set.upgrade(t, "loginset/login", "login", "initconf")
	set.waitForNewRelease(t, "loginset/login", set.loginRelease)
	set.version = newRelease

	jobs.checkAllCompleted(t)
	set.namespace.Eventually(t, time.Minute, "completion of the pending job", func(ctx context.Context) error {
		return set.jobIs(ctx, waiting, "JobState=COMPLETED", "Restarts=0")
	})
	set.waitUntilAllIdle(t)
	t.Run("a job runs on all nodes", set.runsOnAllNodes)
	set.waitForReportedRelease(t, newRelease)
	set.hasMetrics(t)
}

// TestSlurmUpgradeInOneStep gives all daemons the images of another release at the same time, as a helm upgrade with
// another image.tag does, and slurmctld a configuration key that only the new release knows. Each daemon waits for
// those that must be upgraded before it, the key waits for the last node, and no job is lost or started twice.
func TestSlurmUpgradeInOneStep(t *testing.T) {
	set := startUpgrade(t, startOperator(t))
	jobs := set.submitJobs(t, "at-once", "gpu")
	running := set.startJob(t, "--partition=gpu", "--nodelist=gpu-0", "--mem=64M")
	jobs.readAccepted(t) // jobs submitted between now and the replacement of the login pod are found in accounting
	set.upgrade(t, "nodeset/gpu", "slurmd")
	set.upgrade(t, "loginset/login", "login", "initconf")
	set.upgrade(t, "restapi/slurm", "slurmrestd")
	set.upgrade(t, "controller.slinky.slurm.net/slurm", "slurmctld")
	set.setExtraConf(t, "SlurmdTimeout=30\nPrologTimeout=77\nPartitionName=all Nodes=ALL Default=YES State=UP")
	set.upgrade(t, "accounting/slurm", "slurmdbd")
	set.waitForNewRelease(t, "loginset/login", set.loginRelease)
	set.waitForNewRelease(t, "accounting/slurm", set.slurmdbdRelease)
	set.waitForNewRelease(t, "controller.slinky.slurm.net/slurm", set.slurmctldRelease)
	set.waitForNewRelease(t, "restapi/slurm",
		func(ctx context.Context) (string, error) { return set.slurmrestdRelease(ctx, set.token(t)) })
	set.namespace.Eventually(t, 3*time.Minute, "the new release on all nodes except the one with the job",
		func(ctx context.Context) error {
			return set.nodeReleases(ctx, oldRelease, newRelease, newRelease, newRelease)
		})
	set.waitUntilLeftOut(t, "PrologTimeout")
	if err := set.jobIs(t.Context(), running, "JobState=RUNNING", "Restarts=0"); err != nil {
		t.Error(err)
	}
	set.finishJob(t, running)
	set.waitForNewRelease(t, "nodeset/gpu", func(ctx context.Context) (string, error) {
		return newRelease, set.nodeReleases(ctx, newRelease, newRelease, newRelease, newRelease)
	})
	set.version = newRelease
	jobs.checkAllCompleted(t)
	set.waitUntilAllIdle(t)
	t.Run("a job runs on all nodes", set.runsOnAllNodes)
	set.hasMetrics(t)
	set.isConfigured(t, "PrologTimeout", "77")
}

// refusesToReturn gives slurmctld the image of the old release again, which cannot read the state of the new one:
// slurmctld keeps running.
func (n *nodeSet) refusesToReturn(t *testing.T) {
	t.Helper()
	const controller = "controller.slinky.slurm.net/slurm"
	image := smokeSettings{}.Image("slurmctld", oldRelease)
	n.patch(t, controller, map[string]any{"slurmctld": map[string]any{"image": image}})
	n.configurationIs(t, "False|IncompatibleRelease")
	n.waitUntilLeftOut(t, "cannot read the saved state, which is of release "+newRelease)
	n.upgrade(t, controller, "slurmctld")
	n.configurationIs(t, "True|Applied")
	n.waitForNewRelease(t, controller, n.slurmctldRelease)
}

// startUpgrade starts a cluster of the old release with metrics enabled, which only the new release supports: old
// slurmds exit when their configuration has them.
func startUpgrade(t *testing.T, operator kube.Namespace) *nodeSet {
	t.Helper()
	set := startNodeSet(t, operator, oldRelease)
	set.patch(t, "controller.slinky.slurm.net/slurm", map[string]any{"metrics": map[string]any{"enabled": true}})
	set.configurationIs(t, "True|Applied")
	set.waitForReportedRelease(t, oldRelease)
	return set
}

// upgrade gives containers of an object the images of the new release.
func (n *nodeSet) upgrade(t *testing.T, object string, containers ...string) {
	t.Helper()
	spec := map[string]any{}
	for _, container := range containers {
		image := strings.Replace(container, "initconf", "login", 1)
		spec[container] = map[string]any{"image": smokeSettings{}.Image(image, newRelease)}
	}
	n.patch(t, object, spec)
}

// waitForNewRelease waits until an object is ready and its daemon runs the new release.
func (n *nodeSet) waitForNewRelease(t *testing.T, object string, release func(context.Context) (string, error)) {
	t.Helper()
	started := time.Now()
	n.namespace.Eventually(t, 4*time.Minute, object+" of the new release", func(ctx context.Context) error {
		found, err := release(ctx)
		if err == nil && !strings.HasPrefix(found, newRelease+".") && found != newRelease {
			err = fmt.Errorf("it is %q", found)
		}
		if err != nil {
			return err
		}
		return n.isReady(ctx, object)
	})
	t.Logf("%s runs %s after %.1f s", object, newRelease, time.Since(started).Seconds())
}

func (n *nodeSet) slurmdbdRelease(ctx context.Context) (string, error) {
	out, err := n.namespace.Exec(ctx, "statefulset/slurm-accounting", "slurmdbd", "-V")
	return lastWord(out), err
}

// slurmctldRelease returns the release that slurmctld reports.
func (n *nodeSet) slurmctldRelease(ctx context.Context) (string, error) {
	out, err := n.login(ctx, "scontrol", "show", "config")
	for line := range strings.Lines(out) {
		if key, value, _ := strings.Cut(line, "="); strings.TrimSpace(key) == "SLURM_VERSION" {
			return strings.TrimSpace(value), err
		}
	}
	return "", fmt.Errorf("scontrol shows no SLURM_VERSION: %w", err)
}

// slurmrestdRelease returns the release that slurmrestd reports in every response.
func (n *nodeSet) slurmrestdRelease(ctx context.Context, token string) (string, error) {
	body, err := getThroughProxy(ctx, n.namespace.Name, "https:slurm-restapi", token, "/slurm/v0.0.42/ping/")
	_, after, _ := strings.Cut(string(body), `"release":"`)
	release, _, _ := strings.Cut(after, `"`)
	return release, err
}

func (n *nodeSet) loginRelease(ctx context.Context) (string, error) {
	out, err := n.login(ctx, "sinfo", "--version")
	return lastWord(out), err
}

// nodeReleases returns an error unless the nodes run slurmds of these releases, in this order.
func (n *nodeSet) nodeReleases(ctx context.Context, want ...string) error {
	out, err := n.login(ctx, "sinfo", "--noheader", "--Node", "--partition=gpu", "--responding", "--format=%v")
	if err != nil {
		return err
	}
	releases := strings.Fields(out)
	for i, release := range want {
		if len(releases) != len(want) || !strings.HasPrefix(releases[i], release+".") {
			return fmt.Errorf("the nodes run %v, not %v", releases, want)
		}
	}
	return nil
}

// waitForReportedRelease waits until the Controller's status shows a release.
func (n *nodeSet) waitForReportedRelease(t *testing.T, release string) {
	t.Helper()
	n.namespace.Eventually(t, time.Minute, "the release in the status", func(ctx context.Context) error {
		out, err := n.namespace.Run(ctx, "get", "controller.slinky.slurm.net/slurm",
			"--output=jsonpath={.status.slurmVersion}")
		if err == nil && !strings.HasPrefix(out, release+".") {
			err = fmt.Errorf("it is %q", out)
		}
		return err
	})
}

// hasMetrics waits until slurmctld's metrics are enabled, which happens after the last old slurmd is replaced.
func (n *nodeSet) hasMetrics(t *testing.T) {
	t.Helper()
	n.isConfigured(t, "MetricsType", "metrics/openmetrics")
	n.configurationIs(t, "True|Applied")
}

// isConfigured waits until slurmctld runs with a value for a key.
func (n *nodeSet) isConfigured(t *testing.T, key, value string) {
	t.Helper()
	n.namespace.Eventually(t, 2*time.Minute, key+" to be "+value, func(ctx context.Context) error {
		out, err := n.login(ctx, "scontrol", "show", "config")
		for line := range strings.Lines(out) {
			if name, is, found := strings.Cut(line, "="); found && strings.TrimSpace(name) == key &&
				strings.TrimSpace(is) == value {
				return err
			}
		}
		return errors.Join(err, errors.New("it has another value"))
	})
}

// waitUntilLeftOut waits until the Controller reports that a key is left out of the configuration because of old
// slurmds.
func (n *nodeSet) waitUntilLeftOut(t *testing.T, key string) {
	t.Helper()
	n.namespace.Eventually(t, time.Minute, key+" to be left out", func(ctx context.Context) error {
		out, err := n.namespace.Run(ctx, "get", "controller.slinky.slurm.net/slurm",
			`--output=jsonpath={.status.conditions[?(@.type=="ConfigurationApplied")].message}`)
		if err == nil && !strings.Contains(out, key) {
			err = errors.New(out)
		}
		return err
	})
}

func lastWord(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}
