//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestConfinement checks that no job can end another one, and that none is lost when a running cluster becomes confined
// or unconfined.
func TestConfinement(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			set := startNodeSet(t, operator, version)
			t.Run("is the default", func(t *testing.T) { set.isConfined(t, true) })
			t.Run("ends only the job that takes too much memory", set.endsOnlyTheHog)
			t.Run("changes without losing a job", set.changesConfinement)
			t.Run("is refused with the remedy", set.isRefusedByPodSecurity)
		})
	}
}

// isConfined waits until jobs are confined, or are not, and all pods are prepared for it.
func (n *nodeSet) isConfined(t *testing.T, want bool) {
	t.Helper()
	mode, tracking := "None", "proctrack/linuxproc"
	if want {
		mode, tracking = "Cgroups", "proctrack/cgroup"
	}
	n.namespace.Eventually(t, 8*time.Minute, "the mode "+mode, func(ctx context.Context) error {
		got, err := n.namespace.Run(ctx, "get", "controller.slinky.slurm.net/slurm",
			"--output=jsonpath={.status.jobConfinement}")
		if err == nil && got != mode {
			err = fmt.Errorf("the status says %q", got)
		}
		if err != nil {
			return err
		}
		for _, object := range []string{"nodeset/gpu", "controller.slinky.slurm.net/slurm"} {
			if err := conditionIs(ctx, n.namespace, object, "Ready", "True"); err != nil {
				return err
			}
		}
		pods, err := n.namespace.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/name=slurmd", "--output",
			`jsonpath={.items[*].metadata.annotations.nodeset\.slinky\.slurm\.net/cgroup-conf}`)
		if prepared := strings.Count(pods, "CgroupPlugin=autodetect"); err == nil && (prepared == n.nodes()) != want {
			err = fmt.Errorf("%d pods are prepared", prepared)
		}
		if err != nil {
			return err
		}
		config, err := n.login(ctx, "scontrol", "show", "config")
		if err == nil && !strings.Contains(config, tracking) {
			err = fmt.Errorf("ProctrackType is not %s", tracking)
		}
		return err
	})
	out, err := n.login(t.Context(), "srun", "--partition=gpu", "--mem=20", "cat", "/proc/self/cgroup")
	if err != nil || strings.Contains(out, "/step_") != want {
		t.Errorf("a job is in the cgroups %q: %v", out, err)
	}
}

func (n *nodeSet) endsOnlyTheHog(t *testing.T) {
	t.Helper()
	before := n.uids(t)
	options := []string{"--partition=gpu", "--nodelist=gpu-0", "--mem=100"}
	neighbour := n.startJob(t, options...)
	hog := n.submit(t, append(options, "--wrap=dd if=/dev/zero of=/dev/null bs=300M count=1")...)
	n.namespace.Eventually(t, time.Minute, "the end of the hog", func(ctx context.Context) error {
		state, err := n.login(ctx, "sacct", "--noheader", "--parsable2", "--allocations", "--jobs="+hog, "--format=state")
		if err == nil && strings.TrimSpace(state) != "OUT_OF_MEMORY" {
			err = fmt.Errorf("job %s is %s", hog, state)
		}
		return err
	})
	if err := n.jobIs(t.Context(), neighbour, "JobState=RUNNING", "Restarts=0"); err != nil {
		t.Error(err)
	}
	n.finishJob(t, neighbour)
	restarts, err := n.namespace.Run(t.Context(), "get", "pod", "gpu-0",
		"--output=jsonpath={.status.containerStatuses[*].restartCount}")
	if err != nil || strings.Trim(restarts, "0 ") != "" || n.uids(t)["gpu-0"] != before["gpu-0"] {
		t.Errorf("slurmd was restarted: %s, %v", restarts, err)
	}
	n.waitUntilAllIdle(t)
}

func (n *nodeSet) changesConfinement(t *testing.T) {
	jobs := n.submitJobs(t, "switch", "gpu")
	for _, confined := range []bool{false, true} {
		mode := "None"
		if confined {
			mode = "Cgroups"
		}
		started := time.Now()
		n.patch(t, "controller.slinky.slurm.net/slurm", map[string]any{"jobConfinement": mode})
		n.isConfined(t, confined)
		t.Logf("%s: %s after %.1f s", n.version, mode, time.Since(started).Seconds())
	}
	jobs.stop(t)
	jobs.checkAllCompleted(t)
	n.waitUntilAllIdle(t)
}

func (n *nodeSet) isRefusedByPodSecurity(t *testing.T) {
	label := func(value string) {
		t.Helper()
		if _, err := n.namespace.Run(t.Context(), "label", "--overwrite", "namespace", n.namespace.Name,
			"pod-security.kubernetes.io/enforce"+value); err != nil {
			t.Fatal(err)
		}
	}
	label("=baseline")
	n.scale(t, defaultNodes+1)
	n.namespace.Eventually(t, time.Minute, "the reason", func(ctx context.Context) error {
		message, err := n.namespace.Run(ctx, "get", "nodeset/gpu",
			`--output=jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
		for _, part := range []string{`PodSecurity "baseline`, "enforce=privileged", "spec.jobConfinement: None"} {
			if err == nil && !strings.Contains(message, part) {
				err = fmt.Errorf("the message is %q", message)
			}
		}
		return err
	})
	label("-")
	n.namespace.Eventually(t, 2*time.Minute, "the fifth pod", func(ctx context.Context) error {
		return conditionIs(ctx, n.namespace, "nodeset/gpu", "Ready", "True")
	})
	n.scale(t, defaultNodes)
	n.waitUntilAllIdle(t)
}
