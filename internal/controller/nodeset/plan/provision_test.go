package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// provisioning makes room be requested before pods are created.
func provisioning(s *plan.Snapshot) { s.Set.Elastic.Class = "check-capacity" }

// requested adds a request for room that was made some time ago.
func requested(name string, job int64, ago time.Duration, answer plan.Answer, nodes ...int) edit {
	return func(s *plan.Snapshot) {
		provisioning(s)
		request := plan.Request{
			Name: name, Class: "check-capacity", Job: job, Created: epoch.Add(-ago), Answer: answer, Message: "so says it",
		}
		for _, i := range nodes {
			request.SlurmNodes = append(request.SlurmNodes, s.Slurm.Nodes[i].Name)
		}
		s.Set.Elastic.Requests = append(s.Set.Elastic.Requests, request)
	}
}

// using makes all pods use the request r.
func using(s *plan.Snapshot) {
	for i := range s.Pods {
		s.Pods[i].Request = "r"
	}
}

func TestElasticProvisioning(t *testing.T) {
	const first, second = "create ordinal 0: Slurm powers its node up for job 7", "create ordinal 1: Slurm powers its " +
		"node up for job 7"
	withdrawn := []string{"withdraw r: no pods wait for it"}
	check(t, map[string]row{
		"asks for room for all pods of a job before it creates one": {
			elastic(3, waking(7, 0, 1), provisioning),
			[]string{"request-capacity gpu-job-7-ba5dec08: room is needed for 2 pods for job 7"},
		},
		"asks for room for a Slurm node without a job": {
			elastic(1, flags(slurm.FlagPoweringUp, 0), provisioning),
			[]string{"request-capacity gpu-warm-cc6258ec: room is needed for 1 pods for no job"},
		},
		"asks only for what is missing": {
			elastic(2, waking(7, 0, 1), started(time.Second, 0), placed(0), provisioning),
			[]string{"request-capacity gpu-job-7-ba5dec08: room is needed for 1 pods for job 7"},
		},
		"asks for nothing before Slurm powers up all Slurm nodes of the job": {
			elastic(2, allocated(7, 0, 1), flags(slurm.FlagPoweringUp, 0), provisioning), nil,
		},
		"asks for nothing while the configuration is invalid": {
			elastic(1, waking(7, 0), provisioning, set(func(set *plan.Set) { set.Withheld = "invalid" })),
			[]string{"create nothing: invalid"},
		},
		"asks for two jobs at once": {
			elastic(4, waking(7, 0, 1), waking(8, 2, 3), provisioning),
			[]string{
				"request-capacity gpu-job-7-ba5dec08: room is needed for 2 pods for job 7",
				"request-capacity gpu-job-8-98ec808c: room is needed for 2 pods for job 8",
			},
		},
		"waits for an answer": {elastic(2, waking(7, 0, 1), requested("r", 7, time.Minute, plan.Unanswered, 0, 1)), nil},
		"creates all pods when there is room": {
			elastic(2, waking(7, 0, 1), requested("r", 7, time.Minute, plan.Provisioned, 0, 1)), []string{first, second},
		},
		"creates the pods of a later job that has room": {
			elastic(3, waking(6, 0, 1), waking(7, 2), requested("q", 6, time.Minute, plan.Unanswered, 0, 1),
				requested("r", 7, time.Minute, plan.Provisioned, 2)),
			[]string{"create ordinal 2: Slurm powers its node up for job 7"},
		},
		"creates the rest of the pods after an expiry": {
			elastic(2, waking(7, 0, 1), started(time.Second, 0), requested("r", 7, time.Minute, plan.Expired, 0, 1),
				using), []string{second},
		},
		"keeps a request while one of its Slurm nodes is powering up": {
			elastic(2, waking(7, 0, 1), flags(0, 0), started(time.Minute, 0, 1), placed(0, 1),
				requested("r", 7, time.Minute, plan.Provisioned, 0, 1), using), nil,
		},
		"withdraws a request when all Slurm nodes are up": {
			elastic(1, idle(0, 0), allocated(7, 0), requested("r", 7, time.Minute, plan.Expired, 0), using), withdrawn,
		},
		"withdraws a request for other Slurm nodes, and makes another": {
			elastic(3, waking(7, 0, 1), requested("r", 7, time.Minute, plan.Provisioned, 0, 2)),
			append(withdrawn, "request-capacity gpu-job-7-ba5dec08: room is needed for 2 pods for job 7"),
		},
		"withdraws a request for another job, and makes another": {
			elastic(1, waking(8, 0), requested("r", 7, time.Minute, plan.Provisioned, 0)),
			append(withdrawn, "request-capacity gpu-job-8-cc6258ec: room is needed for 1 pods for job 8"),
		},
		"uses the request of a cancelled job": {
			elastic(2, flags(slurm.FlagPoweringUp, 0), requested("r", 7, time.Minute, plan.Provisioned, 0, 1)),
			[]string{"create ordinal 0: Slurm powers its node up"},
		},
		"creates pods at once without provisioning, and withdraws requests": {
			elastic(2, waking(7, 0, 1), requested("r", 7, time.Minute, plan.Unanswered, 0, 1),
				sizes(func(e *plan.Elastic) { e.Class = "" })), append(withdrawn, first, second),
		},
		"withdraws no request while Slurm does not answer": {
			elastic(1, requested("r", 7, time.Minute, plan.Unanswered, 0),
				func(s *plan.Snapshot) { s.Answers = false }), nil,
		},
		"withdraws no request twice": {
			elastic(1, requested("r", 7, time.Minute, plan.Unanswered, 0),
				sizes(func(e *plan.Elastic) { e.Requests[0].Terminating = true })), nil,
		},
	})
}

func TestElasticProvisioningRefused(t *testing.T) {
	const (
		refused = ": ProvisioningRequest r (so says it) has no room for the pods for job 7"
		closes  = ": slurm-operator: no capacity in Kubernetes"
	)
	givenUp := []string{
		"force-power-down node gpu-0" + refused, "force-power-down node gpu-1" + refused, "drain node gpu-2" + closes,
	}
	const late = ": ProvisioningRequest r (so says it) led to no pods for job 7 within 5m0s"
	check(t, map[string]row{
		"gives up the job if there is no room": {
			elastic(3, waking(7, 0, 1), requested("r", 7, time.Minute, plan.Refused, 0, 1)), givenUp,
		},
		"gives up the job if there is no room for its pods any longer": {
			elastic(3, waking(7, 0, 1), requested("r", 7, time.Minute, plan.Expired, 0, 1)), givenUp,
		},
		"gives up the job if no answer comes in time": {
			elastic(3, waking(7, 0, 1), requested("r", 7, 6*time.Minute, plan.Unanswered, 0, 1)),
			[]string{"force-power-down node gpu-0" + late, "force-power-down node gpu-1" + late, "drain node gpu-2" + closes},
		},
		"gives up the job if the room is revoked before its pods are scheduled": {
			elastic(3, waking(7, 0, 1), started(time.Minute, 0, 1), placed(0),
				requested("r", 7, time.Minute, plan.Refused, 0, 1), using), givenUp,
		},
		"waits for scheduled pods, whatever the answer": {
			elastic(3, waking(7, 0, 1), started(time.Minute, 0, 1), placed(0, 1),
				requested("r", 7, time.Minute, plan.Refused, 0, 1), using), nil,
		},
		"waits for pods after an expiry, until the start timeout": {
			elastic(3, waking(7, 0, 1), started(time.Minute, 0, 1), placed(0),
				requested("r", 7, 2*time.Minute, plan.Expired, 0, 1), using), nil,
		},
		"gives up the job if room for the rest of its pods does not come in time": {
			elastic(2, waking(7, 0, 1), started(time.Minute, 0), placed(0),
				requested("r", 7, 6*time.Minute, plan.Unanswered, 0, 1)),
			[]string{"force-power-down node gpu-0" + late, "force-power-down node gpu-1" + late},
		},
		"counts the start timeout from the request": {
			elastic(1, waking(7, 0), started(time.Minute, 0), requested("r", 7, 6*time.Minute, plan.Provisioned, 0), using),
			[]string{"force-power-down node gpu-0: 1 of 1 pods for job 7 could not be scheduled within 5m0s"},
		},
		"closes the Slurm nodes of a failed request, which stays until then": {
			elastic(2, flags(slurm.FlagPoweringDown, 0), requested("r", 7, time.Minute, plan.Refused, 0)),
			[]string{"drain node gpu-0" + closes},
		},
		"powers up no Slurm node that it closes": {
			elastic(1, requested("r", 0, time.Minute, plan.Refused, 0), sizes(func(e *plan.Elastic) { e.Warm = 1 }),
				record(0, func(n *slurm.Node) { n.Reason = byUs("no capacity in Kubernetes") })),
			[]string{"drain node gpu-0" + closes},
		},
		"keeps a failed request until its Slurm nodes are powering down": {
			elastic(1, allocated(7, 0), flags(slurm.FlagPowerDown, 0), started(time.Minute, 0),
				requested("r", 7, time.Minute, plan.Refused, 0), using), nil,
		},
		"withdraws a failed request when its Slurm nodes are closed": {
			elastic(1, flags(slurm.FlagPoweringDown, 0), closed(byUs("no capacity in Kubernetes"), time.Second, 0),
				requested("r", 7, time.Minute, plan.Refused, 0)), []string{"withdraw r: no pods wait for it"},
		},
		"closes no Slurm node whose pod was scheduled": {
			elastic(1, started(time.Minute, 0), placed(0), flags(slurm.FlagPoweringDown, 0), seenOff(0),
				requested("r", 7, time.Minute, plan.Refused, 0), using),
			[]string{"withdraw r: no pods wait for it", "delete gpu-0: its Slurm node is powered down"},
		},
		"closes a Slurm node beyond the maximum for that alone": {
			elastic(1, flags(slurm.FlagPoweringDown, 0), requested("r", 7, time.Minute, plan.Refused, 0),
				sizes(func(e *plan.Elastic) { e.Max = 0 })), []string{"drain node gpu-0: slurm-operator: scale-in"},
		},
		"leaves the drain of an administrator": {
			elastic(1, closed("broken fan", time.Hour, 0), requested("r", 7, time.Minute, plan.Refused, 0)),
			[]string{"withdraw r: no pods wait for it"},
		},
		"gives up nothing without a snapshot that was read for it": {
			elastic(1, waking(7, 0), requested("r", 7, time.Minute, plan.Refused, 0), stale), nil,
		},
		"gives up the power-ups of a deleted NodeSet for that": {
			elastic(1, waking(7, 0), requested("r", 7, time.Minute, plan.Refused, 0),
				set(func(set *plan.Set) { set.Deleting = true })),
			[]string{"force-power-down node gpu-0: the NodeSet is being deleted"},
		},
	})
}

func TestElasticProvisioningSummary(t *testing.T) {
	pending := plan.Next(elastic(2, waking(7, 0, 1), requested("r", 7, time.Minute, plan.Unanswered, 0, 1)))
	if held := pending.Elastic.Held; !strings.Contains(held, "job 7 wait for ProvisioningRequest r (so says it)") {
		t.Errorf("what is held is described as %q", held)
	}
	if want := epoch.Add(4 * time.Minute); !pending.Wake.Equal(want) || pending.Elastic.Refusal != "" {
		t.Errorf("the next plan is made at %s instead of %s; refusal %q", pending.Wake, want, pending.Elastic.Refusal)
	}
	refused := plan.Next(elastic(1, waking(7, 0), requested("r", 7, time.Minute, plan.Refused, 0)))
	if got := refused.Elastic.Refusal; got != "ProvisioningRequest r (so says it)" {
		t.Errorf("the refusal is described as %q", got)
	}
	late := plan.Next(elastic(1, waking(7, 0), started(time.Minute, 0), using,
		requested("r", 7, time.Hour, plan.Provisioned, 0)))
	if got := late.Elastic.Refusal; got != "" {
		t.Errorf("pods that are not scheduled although there is room are described as %q", got)
	}
	ready := plan.Next(elastic(1, waking(7, 0), requested("r", 7, time.Minute, plan.Provisioned, 0)))
	if created := ready.Of(plan.Create); len(created) != 1 || created[0].Request == nil || created[0].Request.Name != "r" {
		t.Errorf("the pods to create are %+v", created)
	}
}
