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

// The upgrade is from the oldest release that is supported to the newest, which is as far as Slurm itself allows.
const oldRelease, newRelease = "24.11", "26.05"

// TestUpgradeOfSlurm upgrades a cluster to another release of Slurm while users submit jobs, in the order that Slurm asks for:
// slurmdbd, slurmctld, the nodes, and then what users and programs talk to. No job is lost or begun twice, and one that began before
// the upgrade and one that waited for it all the while come to their ends.
func TestUpgradeOfSlurm(t *testing.T) {
	set := startUpgrade(t, startOperator(t))
	books := set.usersSubmit(t, "upgrade", "gpu")
	running := set.startsAJob(t, "--partition=gpu", "--nodelist=gpu-0", "--mem=64M")
	waiting := set.queuesAJob(t, "--partition=gpu", "--mem=64M", "--dependency=afterok:"+running)
	unharmed := func() {
		t.Helper()
		set.namespace.Eventually(t, time.Minute, "the jobs from before", func(ctx context.Context) error {
			if err := set.jobIs(ctx, waiting, "JobState=PENDING", "Restarts=0"); err != nil {
				return err
			}
			return set.jobIs(ctx, running, "JobState=RUNNING", "Restarts=0")
		})
	}

	set.upgrade(t, "accounting/slurm", "slurmdbd")
	set.becomesNew(t, "accounting/slurm", set.slurmdbdRelease)
	unharmed()

	set.upgrade(t, "controller.slinky.slurm.net/slurm", "slurmctld")
	set.becomesNew(t, "controller.slinky.slurm.net/slurm", set.slurmctldRelease)
	set.configurationIs(t, "True|Applied")
	unharmed()

	set.upgrade(t, "nodeset/gpu", "slurmd")
	set.namespace.Eventually(t, 3*time.Minute, "the new release on all nodes but that with the job", func(ctx context.Context) error {
		return set.nodeReleases(ctx, oldRelease, newRelease, newRelease, newRelease)
	})
	unharmed()
	set.endsTheJob(t, running)
	set.becomesNew(t, "nodeset/gpu", func(ctx context.Context) (string, error) {
		return newRelease, set.nodeReleases(ctx, newRelease, newRelease, newRelease, newRelease)
	})

	set.upgrade(t, "restapi/slurm", "slurmrestd")
	set.becomesNew(t, "restapi/slurm", func(ctx context.Context) (string, error) { return set.slurmrestdRelease(ctx, set.token(t)) })

	books.close(t) // it is a user's session in a login pod, and ends with that
	set.upgrade(t, "loginset/login", "login", "initconf")
	set.becomesNew(t, "loginset/login", set.loginRelease)
	set.version = newRelease

	books.balance(t)
	set.namespace.Eventually(t, time.Minute, "the end of the job that waited", func(ctx context.Context) error {
		return set.jobIs(ctx, waiting, "JobState=COMPLETED", "Restarts=0")
	})
	set.isWhole(t)
	t.Run("a job runs on all nodes", set.runsOnAllNodes)
	set.toldOf(t, newRelease)
	set.hasMetrics(t)
}

// TestUpgradeOfSlurmAtOnce gives all daemons the images of another release at the same time, as one helm upgrade with another image.tag
// does, and slurmctld a key that only the new release knows. Each waits for those that have to go before it, the key for the last node, and
// no job is lost or begun twice.
func TestUpgradeOfSlurmAtOnce(t *testing.T) {
	set := startUpgrade(t, startOperator(t))
	books := set.usersSubmit(t, "at-once", "gpu")
	running := set.startsAJob(t, "--partition=gpu", "--nodelist=gpu-0", "--mem=64M")
	books.read(t) // what is submitted from now on, until the login pod is replaced, is known from accounting
	set.upgrade(t, "nodeset/gpu", "slurmd")
	set.upgrade(t, "loginset/login", "login", "initconf")
	set.upgrade(t, "restapi/slurm", "slurmrestd")
	set.upgrade(t, "controller.slinky.slurm.net/slurm", "slurmctld")
	set.setExtraConf(t, "SlurmdTimeout=30\nPrologTimeout=77\nPartitionName=all Nodes=ALL Default=YES State=UP")
	set.upgrade(t, "accounting/slurm", "slurmdbd")
	set.becomesNew(t, "loginset/login", set.loginRelease)
	set.becomesNew(t, "accounting/slurm", set.slurmdbdRelease)
	set.becomesNew(t, "controller.slinky.slurm.net/slurm", set.slurmctldRelease)
	set.becomesNew(t, "restapi/slurm", func(ctx context.Context) (string, error) { return set.slurmrestdRelease(ctx, set.token(t)) })
	set.namespace.Eventually(t, 3*time.Minute, "the new release on all nodes but that with the job", func(ctx context.Context) error {
		return set.nodeReleases(ctx, oldRelease, newRelease, newRelease, newRelease)
	})
	set.leavesOut(t, "PrologTimeout")
	if err := set.jobIs(t.Context(), running, "JobState=RUNNING", "Restarts=0"); err != nil {
		t.Error(err)
	}
	set.endsTheJob(t, running)
	set.becomesNew(t, "nodeset/gpu", func(ctx context.Context) (string, error) {
		return newRelease, set.nodeReleases(ctx, newRelease, newRelease, newRelease, newRelease)
	})
	set.version = newRelease
	books.balance(t)
	set.isWhole(t)
	t.Run("a job runs on all nodes", set.runsOnAllNodes)
	set.hasMetrics(t)
	set.isConfigured(t, "PrologTimeout", "77")
}

// startUpgrade starts a cluster of the old release. It asks for metrics, which only the new one has: old slurmds end when they get a
// configuration with them.
func startUpgrade(t *testing.T, operator kube.Namespace) *nodeSet {
	t.Helper()
	set := startNodeSet(t, operator, oldRelease)
	set.patch(t, "controller.slinky.slurm.net/slurm", map[string]any{"metrics": map[string]any{"enabled": true}})
	set.configurationIs(t, "True|Applied")
	set.toldOf(t, oldRelease)
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

// becomesNew waits until an object is ready and its daemon of the new release.
func (n *nodeSet) becomesNew(t *testing.T, object string, release func(context.Context) (string, error)) {
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

// slurmctldRelease is what slurmctld says of itself.
func (n *nodeSet) slurmctldRelease(ctx context.Context) (string, error) {
	out, err := n.login(ctx, "scontrol", "show", "config")
	for line := range strings.Lines(out) {
		if key, value, _ := strings.Cut(line, "="); strings.TrimSpace(key) == "SLURM_VERSION" {
			return strings.TrimSpace(value), err
		}
	}
	return "", fmt.Errorf("scontrol shows no SLURM_VERSION: %w", err)
}

// slurmrestdRelease is what slurmrestd says of itself in every answer.
func (n *nodeSet) slurmrestdRelease(ctx context.Context, token string) (string, error) {
	body, err := getThroughProxy(ctx, n.namespace.Name, "slurm-restapi", token, "/slurm/v0.0.42/ping/")
	_, after, _ := strings.Cut(string(body), `"release":"`)
	release, _, _ := strings.Cut(after, `"`)
	return release, err
}

func (n *nodeSet) loginRelease(ctx context.Context) (string, error) {
	out, err := n.login(ctx, "sinfo", "--version")
	return lastWord(out), err
}

// nodeReleases reports that the nodes do not run slurmds of these releases, in this order.
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

// toldOf waits until the Controller's status tells of a release.
func (n *nodeSet) toldOf(t *testing.T, release string) {
	t.Helper()
	n.namespace.Eventually(t, time.Minute, "the release in the status", func(ctx context.Context) error {
		out, err := n.namespace.Run(ctx, "get", "controller.slinky.slurm.net/slurm", "--output=jsonpath={.status.slurmVersion}")
		if err == nil && !strings.HasPrefix(out, release+".") {
			err = fmt.Errorf("it is %q", out)
		}
		return err
	})
}

// hasMetrics waits for slurmctld's own metrics, which wait for the last old slurmd.
func (n *nodeSet) hasMetrics(t *testing.T) {
	t.Helper()
	n.isConfigured(t, "MetricsType", "metrics/openmetrics")
	n.configurationIs(t, "True|Applied")
}

// isConfigured waits until slurmctld runs with a value.
func (n *nodeSet) isConfigured(t *testing.T, key, value string) {
	t.Helper()
	n.namespace.Eventually(t, 2*time.Minute, key+" to be "+value, func(ctx context.Context) error {
		out, err := n.login(ctx, "scontrol", "show", "config")
		for line := range strings.Lines(out) {
			if name, is, found := strings.Cut(line, "="); found && strings.TrimSpace(name) == key && strings.TrimSpace(is) == value {
				return err
			}
		}
		return errors.Join(err, errors.New("it is not"))
	})
}

// leavesOut waits until the Controller says that a key is left out of the configuration, for the sake of old slurmds.
func (n *nodeSet) leavesOut(t *testing.T, key string) {
	t.Helper()
	n.namespace.Eventually(t, time.Minute, key+" to be left out", func(ctx context.Context) error {
		out, err := n.namespace.Run(ctx, "get", "controller.slinky.slurm.net/slurm", `--output=jsonpath={.status.conditions[?(@.type=="ConfigurationApplied")].message}`)
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
