package nodeset

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// twoNodes returns the scope of a NodeSet with two healthy pods.
func twoNodes() *scope {
	is := &scope{
		set: &slinkyv1beta1.NodeSet{
			ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
			Spec:       slinkyv1beta1.NodeSetSpec{ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}},
		},
		controller: &slinkyv1beta1.Controller{}, template: &corev1.PodTemplateSpec{}, now: noon,
		pods: make([]corev1.Pod, 2),
	}
	is.snapshot = plan.Snapshot{
		Now: noon, Answers: true, Slurm: &slurm.Snapshot{},
		Set: plan.Set{
			Replicas: 2, Registration: 5 * time.Minute, Update: plan.Update{Replace: true, MaxUnavailable: 1},
		},
	}
	for _, name := range []string{"gpu-0", "gpu-1"} {
		is.snapshot.Pods = append(is.snapshot.Pods, plan.Pod{
			Name: name, SlurmNode: name, Started: noon.Add(-time.Hour), ReadySince: noon.Add(-time.Hour),
		})
		is.snapshot.Slurm.Nodes = append(is.snapshot.Slurm.Nodes, &slurm.Node{Name: name, State: slurm.StateIdle})
	}
	return is
}

func TestJudge(t *testing.T) {
	jobs := plan.Wait{
		Cause: plan.ScaleIn, Hold: plan.Hold{Kind: plan.Jobs, Why: "gpu-1 runs job 7 until 2026-03-01 13:00 UTC"},
	}
	unreachable := plan.Wait{Cause: plan.ScaleIn, Hold: plan.Hold{Kind: plan.Unreachable, Why: "Slurm does not answer"}}
	deletion := plan.Wait{Cause: plan.Deletion, Hold: jobs.Hold}
	tests := map[string]struct {
		edit func(*scope, *plan.Plan)
		want status.Verdict
	}{
		"all Slurm nodes are available": {
			func(*scope, *plan.Plan) {}, status.Ready("2 Slurm nodes: 2 idle, 0 allocated, 0 drained"),
		},
		"no pods are desired": {
			func(is *scope, next *plan.Plan) { is.pods, is.snapshot.Pods, next.Desired = nil, nil, 0 },
			status.Ready("the NodeSet is scaled to zero"),
		},
		"pods cannot be created": {
			func(is *scope, _ *plan.Plan) {
				is.problem = status.Problem(slinkyv1beta1.ReasonControllerNotFound, "%s", "there is none; create it")
			},
			status.Degraded(slinkyv1beta1.ReasonControllerNotFound, "there is none; create it"),
		},
		"a scale-in waits for a job": {
			func(_ *scope, next *plan.Plan) { next.Waits = []plan.Wait{jobs} },
			status.Progressing(slinkyv1beta1.ReasonDraining,
				"waiting for 1 node: gpu-1 runs job 7 until 2026-03-01 13:00 UTC"),
		},
		"a scale-in waits for many jobs": {
			func(_ *scope, next *plan.Plan) { next.Waits = []plan.Wait{jobs, jobs, jobs, jobs, jobs} },
			status.Progressing(slinkyv1beta1.ReasonDraining,
				"waiting for 5 nodes: gpu-1 runs job 7 until 2026-03-01 13:00 UTC; gpu-1 runs job 7 until "+
					"2026-03-01 13:00 UTC; gpu-1 runs job 7 until 2026-03-01 13:00 UTC; and 2 more"),
		},
		"a scale-in waits for Slurm": {
			func(is *scope, next *plan.Plan) { is.snapshot.Answers, next.Waits = false, []plan.Wait{unreachable} },
			status.Progressing(slinkyv1beta1.ReasonWaitingForSlurm, "waiting for 1 node: Slurm does not answer"),
		},
		"a deletion waits, and the message says how to skip the drain": {
			func(is *scope, next *plan.Plan) {
				is.set.DeletionTimestamp, next.Waits = &metav1.Time{Time: noon}, []plan.Wait{deletion}
			},
			status.Progressing(slinkyv1beta1.ReasonDeleting,
				"waiting for 1 node: gpu-1 runs job 7 until 2026-03-01 13:00 UTC; to delete them nevertheless, and "+
					"lose their jobs, annotate the NodeSet with nodeset.slinky.slurm.net/delete-without-drain=true"),
		},
		"an update is stopped": {
			func(_ *scope, next *plan.Plan) { next.Stopped = "1 of 1 pods do not come up" },
			status.Degraded(slinkyv1beta1.ReasonUpdateStopped,
				"1 of 1 pods do not come up"),
		},
		"an update is in progress": {
			func(_ *scope, next *plan.Plan) { next.Updated, next.Outdated = 1, 1 },
			status.Progressing(slinkyv1beta1.ReasonUpdating, "1 of 2 pods are up to date"),
		},
		"pods are missing": {
			func(_ *scope, next *plan.Plan) { next.Desired = 5 },
			status.Progressing(slinkyv1beta1.ReasonScalingOut, "2 of 5 pods exist, 2 are ready"),
		},
		"the template of new pods is unknown": {
			func(is *scope, _ *plan.Plan) { is.template = nil },
			status.Progressing(slinkyv1beta1.ReasonControllerNotReady,
				"the Controller's status does not say yet whether jobs are confined, or which user its daemons have"),
		},
		"a pod of an older revision waits for slurmctld to know its GRES": {
			func(is *scope, next *plan.Plan) {
				is.awaited, is.snapshot.Set.Withheld, next.Updated, next.Outdated = []string{"gpu"}, "gpu", 1, 1
			},
			status.Progressing(slinkyv1beta1.ReasonControllerNotReady, "2 of 2 pods exist, 1 are up to date; others wait "+
				"until slurmctld runs with a configuration that has the GRES gpu"),
		},
		"slurmctld does not run with a changed partition yet": {
			func(is *scope, _ *plan.Plan) {
				is.partition, is.set.Spec.Partition.Enabled = desired.PartitionDiffers, true
			},
			status.Progressing(slinkyv1beta1.ReasonControllerNotReady,
				"slurmctld does not run with the partition of the NodeSet yet; see the conditions of Controller slurm"),
		},
		"slurmctld runs with a removed partition": {
			func(is *scope, _ *plan.Plan) { is.partition = desired.PartitionDiffers },
			status.Progressing(slinkyv1beta1.ReasonControllerNotReady, "the partition of the NodeSet has been removed, and "+
				"slurmctld does not run without it yet; see the conditions of Controller slurm"),
		},
		"a removed partition has jobs": {
			func(is *scope, _ *plan.Plan) { is.partition = desired.PartitionLeaves },
			status.Progressing(slinkyv1beta1.ReasonControllerNotReady, "the partition of the NodeSet has been removed: it "+
				"accepts no new jobs, and stays until its last job has ended; cancel the jobs to remove it now (scancel "+
				"--partition=gpu)"),
		},
		"a pod of an older revision stays until it is deleted by hand": {
			func(is *scope, next *plan.Plan) {
				next.Updated, next.Outdated, is.snapshot.Set.Update.Replace = 1, 1, false
			},
			status.Ready("2 Slurm nodes: 2 idle, 0 allocated, 0 drained"),
		},
		"a pod of an older revision is being deleted": {
			func(is *scope, next *plan.Plan) {
				next.Updated, is.snapshot.Pods[1].Terminating = 1, true
			},
			status.Progressing(slinkyv1beta1.ReasonPodsNotReady, "1 of 2 pods are ready"),
		},
		"a slurmd is about to register": {
			func(is *scope, _ *plan.Plan) {
				is.snapshot.Slurm.Nodes, is.snapshot.Pods[1].Started = is.snapshot.Slurm.Nodes[:1], noon
			},
			status.Progressing(slinkyv1beta1.ReasonPodsNotReady, "1 slurmds have not registered with Slurm yet"),
		},
		"a slurmd never registered": {
			func(is *scope, next *plan.Plan) {
				is.snapshot.Slurm.Nodes, next.Unregistered = is.snapshot.Slurm.Nodes[:1], []string{"gpu-1"}
			},
			status.Degraded(slinkyv1beta1.ReasonNotRegistered,
				"1 slurmds run and have not registered with Slurm within 5m0s, such as gpu-1; see the log of its pod"),
		},
		"nodes are down": {
			func(is *scope, _ *plan.Plan) { is.snapshot.Slurm.Nodes[0].State = slurm.StateDown },
			status.Degraded(slinkyv1beta1.ReasonNodesDown,
				"1 Slurm nodes are down although their pods run; see sinfo -R for the reasons"),
		},
		"Slurm does not answer": {
			func(is *scope, _ *plan.Plan) { is.snapshot.Answers = false },
			status.Progressing(slinkyv1beta1.ReasonWaitingForSlurm,
				"Slurm does not answer, so the state of its nodes is unknown; no pod is touched meanwhile"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			is, next := twoNodes(), &plan.Plan{Desired: 2, Updated: 2}
			test.edit(is, next)
			if got := judge(is, next, count(is, next), nil); got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// The status of the time before a restart of the operator stays until Slurm's first answer, unless it says that a
// change is done that Kubernetes shows is not.
func TestStatusStaysUntilFirstAnswerOnlyWhileItHolds(t *testing.T) {
	for name, test := range map[string]struct {
		edit  func(*scope, *plan.Plan)
		stays bool
	}{
		"all pods are as the spec wants them": {func(*scope, *plan.Plan) {}, true},
		"a pod is of an older revision": {
			func(_ *scope, next *plan.Plan) { next.Updated, next.Outdated = 1, 1 }, false,
		},
		"pods of an older revision stay until they are deleted by hand": {
			func(is *scope, next *plan.Plan) {
				next.Updated, next.Outdated, is.snapshot.Set.Update.Replace = 1, 1, false
			}, true,
		},
		"a pod is missing":         {func(_ *scope, next *plan.Plan) { next.Desired = 3 }, false},
		"there is a pod in excess": {func(_ *scope, next *plan.Plan) { next.Desired = 1 }, false},
		"a pod is being deleted":   {func(is *scope, _ *plan.Plan) { is.snapshot.Pods[1].Terminating = true }, false},
		"a pod is not ready": {
			func(is *scope, _ *plan.Plan) { is.snapshot.Pods[1].ReadySince = time.Time{} }, false,
		},
		"the Accounting is missing": {func(is *scope, _ *plan.Plan) { is.problem = &status.Verdict{} }, false},
		"the status does not say that it is done": {
			func(is *scope, next *plan.Plan) { next.Desired, is.set.Status.Conditions = 3, nil }, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			is, next := twoNodes(), &plan.Plan{Desired: 2, Updated: 2}
			is.snapshot.Answers, is.snapshot.Slurm = false, nil
			is.set.Status.Conditions = []metav1.Condition{{
				Type: slinkyv1beta1.ConditionReady, Status: metav1.ConditionTrue,
			}}
			test.edit(is, next)
			if stays := staysTrue(is, next, count(is, next)); stays != test.stays {
				t.Errorf("the status stays: %t", stays)
			}
		})
	}
}
