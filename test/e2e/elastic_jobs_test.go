//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// completes waits until all tasks of a job have completed.
func (e *elasticSet) completes(t *testing.T, job string, tasks int) {
	t.Helper()
	e.namespace.Eventually(t, 8*time.Minute, "completion of job "+job, func(ctx context.Context) error {
		out, err := e.login(ctx, "scontrol", "show", "job", job)
		if err == nil && (strings.Count(out, "JobState=") != tasks || strings.Count(out, "JobState=COMPLETED") != tasks) {
			err = fmt.Errorf("scontrol shows %q", out)
		}
		return err
	})
}

// Slurm decides which nodes a job gets, in whichever way it asks for them.
func (e *elasticSet) runsJobsOfEveryKind(t *testing.T) {
	e.scontrol(t, "create", "reservation", "reservationname=held", "starttime=now", "duration=60", "users=root",
		"nodes=gpu-1")
	first := e.submit(t, "--partition=gpu", "--wrap=sleep 2")
	for _, kind := range []struct {
		name    string
		options []string
		tasks   int
	}{
		{"a dependency", []string{"--dependency=afterok:" + first}, 1},
		{"an array", []string{"--array=0-3"}, 4},
		{"exclusive nodes", []string{"--nodes=2", "--exclusive"}, 1},
		{"a reservation", []string{"--reservation=held"}, 1},
	} {
		t.Run(kind.name, func(t *testing.T) {
			e.completes(t, e.submit(t, append(kind.options, "--partition=gpu", "--wrap=srun hostname")...), kind.tasks)
		})
	}
	e.scontrol(t, "delete", "reservationname=held")
	t.Run("an interactive one", func(t *testing.T) {
		out, err := e.login(t.Context(), "srun", "--partition=gpu", "--nodelist=gpu-0", "hostname")
		if err != nil || strings.TrimSpace(out) != "gpu-0" {
			t.Errorf("srun printed %q: %v", out, err)
		}
	})
	e.allPoweredDown(t)
}

// Of two elastic NodeSets, only one has the feature that a job needs.
func (e *elasticSet) powersUpOnlyNodesWithFeature(t *testing.T) {
	e.namespace.ApplyTemplates(t, manifests, "nodeset/elastic-fast.yaml", settings{
		smokeSettings: smokeSettings{Version: e.version}, Nodes: 1,
	})
	e.namespace.Eventually(t, 3*time.Minute, "the nodes of the second NodeSet",
		func(ctx context.Context) error { return e.sinfoShows(ctx, "fast idle~ 1") })
	job := e.submit(t, "--partition=gpu,fast", "--constraint=turbo", "--wrap=sleep 5")
	e.hasPods(t, "fast-0")
	e.jobBecomes(t, job, "JobState=COMPLETED", "NodeList=fast-0", "Restarts=0")
	e.namespace.MustRun(t, "delete", "nodeset/fast", "--timeout=5m")
	e.allPoweredDown(t)
}

// A job for a node that is powering down waits, and then powers it up again.
func (e *elasticSet) runsJobDuringPowerDown(t *testing.T) {
	e.completes(t, e.submit(t, "--partition=gpu", "--nodelist=gpu-0", "--wrap=true"), 1)
	e.namespace.Eventually(t, 3*time.Minute, "a node that is powering down", func(ctx context.Context) error {
		out, err := e.login(ctx, "scontrol", "show", "node", "gpu-0")
		if err == nil && !strings.Contains(out, "POWERING_DOWN") {
			err = fmt.Errorf("scontrol shows %q", out)
		}
		return err
	})
	job := e.submit(t, "--partition=gpu", "--nodelist=gpu-0", "--wrap=true")
	e.jobBecomes(t, job, "JobState=COMPLETED", "Restarts=0")
	e.allPoweredDown(t)
}

// Two jobs that do not have room at the same time do not wait for each other for ever.
func (e *elasticSet) runsTwoWideJobs(t *testing.T) {
	var jobs []string
	for range 2 {
		jobs = append(jobs, e.submit(t, "--partition=gpu", fmt.Sprintf("--nodes=%d", max(e.nodes/2, 2)), "--exclusive",
			"--wrap=sleep 5"))
	}
	for _, job := range jobs {
		e.completes(t, job, 1)
	}
	e.allPoweredDown(t)
}

// A job for which there is no room starts by itself when there is.
func (e *elasticSet) runsJobWhenCapacityAppears(t *testing.T) {
	all := strings.Fields(e.namespace.MustRun(t, "get", "nodes", "--output=jsonpath={.items[*].metadata.name}"))
	e.namespace.MustRun(t, "cordon", all[0])
	defer e.namespace.MustRun(t, "uncordon", all[0])
	job := e.submit(t, "--partition=gpu", fmt.Sprintf("--nodes=%d", len(all)), "--wrap=true")
	e.namespace.Eventually(t, 5*time.Minute, "a message about missing capacity", func(ctx context.Context) error {
		return conditionIs(ctx, e.namespace, "nodeset/gpu", "CapacityUnavailable", "True|Unschedulable")
	})
	e.namespace.MustRun(t, "uncordon", all[0])
	e.completes(t, job, 1)
	e.allPoweredDown(t)
}

// The status says why a node is up: for a job, then until the idle timeout, and while a schedule asks for it.
func (e *elasticSet) saysWhyNodesAreUp(t *testing.T) {
	shows := func(want string) {
		t.Helper()
		e.namespace.Eventually(t, 5*time.Minute, "the status "+want, func(ctx context.Context) error {
			out, err := e.namespace.Run(ctx, "get", "nodeset/gpu",
				"--output=jsonpath={.status.elastic.busy} {.status.elastic.scheduled} {.status.elastic.jobs}")
			if err == nil && strings.TrimSpace(out) != want {
				err = fmt.Errorf("it is %q", out)
			}
			return err
		})
	}
	job := e.startElasticJob(t)
	shows(fmt.Sprintf("1 0 [%s]", job))
	now := time.Now().UTC()
	e.patch(t, "nodeset/gpu", map[string]any{"elastic": map[string]any{"schedules": []map[string]any{{
		"warmReplicas": 1, "from": now.Add(-time.Hour).Format("15:04"), "to": now.Add(2 * time.Hour).Format("15:04"),
	}}}})
	shows(fmt.Sprintf("1 1 [%s]", job)) // another node
	e.finishJob(t, job)
	shows("0 1")
	e.patch(t, "nodeset/gpu", map[string]any{"elastic": map[string]any{"schedules": nil}})
	e.allPoweredDown(t)
}

// A Kubernetes node that is about to be reclaimed drains its Slurm node, and its job runs on.
func (e *elasticSet) drainsReclaimedNode(t *testing.T) {
	const taint = "aws-node-termination-handler/spot-itn"
	job := e.startElasticJob(t, "--nodelist=gpu-0")
	node := e.kubernetesNodeOf(t, "gpu-0")
	e.namespace.MustRun(t, "taint", "node", node, taint+"=test:PreferNoSchedule")
	defer func() {
		if strings.Contains(e.namespace.MustRun(t, "get", "node", node, "--output=jsonpath={.spec.taints[*].key}"), taint) {
			e.namespace.MustRun(t, "taint", "node", node, taint+"-")
		}
	}()
	e.drainIs(t, "gpu-0", fmt.Sprintf("slurm-operator: Kubernetes node %s has taint %s", node, taint))
	e.finishJob(t, job)
	if pods, err := e.pods(t.Context()); err != nil || !slices.Contains(pods, "gpu-0") {
		t.Errorf("there are %v: %v", pods, err)
	}
	e.namespace.MustRun(t, "taint", "node", node, taint+"-")
	e.allPoweredDown(t)
}
