//go:build integration

package operator_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

// newElasticWorld creates an elastic NodeSet, waits until its records are in slurm.conf, and gives them to Slurm.
func newElasticWorld(t *testing.T, maxReplicas int32) *nodeWorld {
	t.Helper()
	set := newNodeSet(1)
	set.Spec.Replicas = nil
	set.Spec.Slurmd.Raw = []byte(`{"resources":{"limits":{"cpu":"2","memory":"1Gi"}}}`)
	set.Spec.ExtraConf = "RealMemory=500"
	set.Spec.Elastic = &slinkyv1beta1.NodeSetElastic{
		MaxReplicas: maxReplicas, IdleTimeout: metav1.Duration{Duration: 10 * time.Second},
		StartTimeout: metav1.Duration{Duration: 30 * time.Second},
	}
	w := &nodeWorld{world: newWorld(t), set: set}
	w.kubelet = w.startKubelet(t)
	w.readyController(t)
	admin, err := w.dial(rest.Options{
		Token: func(context.Context) (string, error) { return w.slurm.Token("root"), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.admin = admin
	t.Cleanup(w.acceptEverything(t))
	w.create(t, set)
	w.is(t, slinkyv1beta1.ConditionReady, metav1.ConditionFalse, slinkyv1beta1.ReasonControllerNotReady)
	w.inForce(t, []string{
		fmt.Sprintf("NodeName=gpu-[0-%d] State=CLOUD Features=gpu CPUs=2 RealMemory=500", maxReplicas-1),
	})
	w.slurm.ForgetNode("node-0") // no other node takes jobs
	for ordinal := range int(maxReplicas) {
		w.slurm.AddCloudNodes(naming.WorkerHost(set, ordinal))
	}
	w.ready(t)
	return w
}

// forever is the script of a job that runs until it is cancelled, however slow the computer is.
const forever = "sleep 100000"

// submit submits a job for some nodes.
func (w *nodeWorld) submit(t *testing.T, nodes int, script string) int64 {
	t.Helper()
	job, err := w.slurm.Submitter("root").Submit(t.Context(), slurmtest.JobRequest{
		Name: "elastic", Script: "#!/bin/sh\n" + script, Nodes: nodes, TimeLimit: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// jobIs waits until a job has a state.
func (w *nodeWorld) jobIs(t *testing.T, id int64, state string) {
	t.Helper()
	w.until(t, fmt.Sprintf("job %d to be %s", id, state), func(ctx context.Context) error {
		job, err := w.admin.Job(ctx, id)
		if err == nil && !slices.Contains(job.States, state) {
			err = fmt.Errorf("it is %v on %q", job.States, job.Nodes)
		}
		return err
	})
}

func TestElasticNodeSetFollowsJobs(t *testing.T) {
	t.Parallel()
	w := newElasticWorld(t, 4)
	w.waitUntilIdle(t)
	w.hasPods(t)
	job := w.submit(t, 3, forever)
	w.hasPods(t, "gpu-0", "gpu-1", "gpu-2")
	w.jobIs(t, job, "RUNNING")
	w.cancelJob(t, job)
	w.hasPods(t)
	for ordinal := range 3 {
		w.node(t, naming.WorkerHost(w.set, ordinal), "powered down", (*slurm.Node).PoweredOff)
	}
	w.ready(t)
}

// A schedule keeps idle nodes up while it is its time, and the status says why nodes are up.
func TestElasticNodeSetSaysWhyNodesAreUp(t *testing.T) {
	t.Parallel()
	w := newElasticWorld(t, 4)
	shows := func(want slinkyv1beta1.NodeSetElasticStatus) {
		t.Helper()
		w.eventually(t, w.set.Name, w.set, func() error {
			got := w.set.Status.Elastic.DeepCopy()
			if got != nil {
				got.JobsChangedAt = nil
			}
			if diff := cmp.Diff(&want, got); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
	}
	shows(slinkyv1beta1.NodeSetElasticStatus{})
	now := time.Now().UTC()
	w.patch(t, w.set, `{"spec":{"elastic":{"schedules":[{"warmReplicas":1,"from":%q,"to":%q}]}}}`,
		now.Add(-time.Hour).Format("15:04"), now.Add(2*time.Hour).Format("15:04"))
	w.hasPods(t, "gpu-0")
	shows(slinkyv1beta1.NodeSetElasticStatus{Scheduled: 1})
	job := w.submit(t, 1, forever)
	shows(slinkyv1beta1.NodeSetElasticStatus{Busy: 1, Scheduled: 1, Jobs: []int64{job}})
	w.cancelJob(t, job)
	shows(slinkyv1beta1.NodeSetElasticStatus{Scheduled: 1})
	w.patch(t, w.set, `{"spec":{"elastic":{"schedules":null}}}`)
	w.hasPods(t)
	shows(slinkyv1beta1.NodeSetElasticStatus{})
	w.waitUntilIdle(t)
}

// A Kubernetes node that is about to be reclaimed drains its Slurm node.
func TestElasticNodeSetDrainsReclaimedNode(t *testing.T) {
	t.Parallel()
	w := newElasticWorld(t, 2)
	job := w.submit(t, 1, forever)
	w.jobIs(t, job, "RUNNING")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.kubelet.nodeName}}
	w.patch(t, node, `{"spec":{"taints":[{"key":"karpenter.sh/disrupted","effect":"NoSchedule"}]}}`)
	w.node(t, "gpu-0", "drained", func(is *slurm.Node) bool {
		return is.DrainedByUs() && strings.HasSuffix(is.Reason, "has taint karpenter.sh/disrupted")
	})
	w.cancelJob(t, job)
	w.hasPods(t, "gpu-0")
	w.patch(t, node, `{"spec":{"taints":null}}`)
	w.hasPods(t) // it is open, and idle
}

// kubectl scale sets spec.replicas, which an elastic NodeSet does not have.
func TestElasticNodeSetRefusesScale(t *testing.T) {
	t.Parallel()
	w := newElasticWorld(t, 2)
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	err := w.SubResource("scale").Update(t.Context(), w.set, client.WithSubResourceBody(scale))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.elastic.maxReplicas") {
		t.Errorf("scaling returned %v", err)
	}
}

// A job for more nodes than Kubernetes can place leaves no pod behind, and a smaller one behind it runs.
func TestElasticNodeSetGivesUpWhatCannotBePlaced(t *testing.T) {
	t.Parallel()
	w := newElasticWorld(t, 4)
	w.kubelet.limit(3)
	large := w.submit(t, 4, "sleep 1")
	small := w.submit(t, 3, "sleep 1")
	w.is(t, slinkyv1beta1.ConditionCapacityUnavailable, metav1.ConditionTrue, slinkyv1beta1.ReasonUnschedulable)
	w.jobIs(t, large, "PENDING")
	w.jobIs(t, small, "COMPLETED")
	w.node(t, "gpu-3", "closed", func(node *slurm.Node) bool { return node.DrainedByUs() })
	w.hasPods(t)
}

// A drain of an administrator is neither lifted by a power-down nor by the idle timeout.
func TestElasticNodeSetKeepsDrainOfAdministrator(t *testing.T) {
	t.Parallel()
	w := newElasticWorld(t, 2)
	job := w.submit(t, 1, forever)
	w.jobIs(t, job, "RUNNING")
	err := w.admin.UpdateNodes(t.Context(), []string{"gpu-0"}, slurm.NodeUpdate{State: slurm.Drain, Reason: "broken fan"})
	if err != nil {
		t.Fatal(err)
	}
	w.cancelJob(t, job)
	other := w.submit(t, 1, "sleep 1")
	w.jobIs(t, other, "COMPLETED")
	w.hasPods(t, "gpu-0")
	w.node(t, "gpu-0", "drained", func(node *slurm.Node) bool {
		return node.Draining() && node.Reason == "broken fan" && !node.PoweredOff()
	})
}

// Records are closed before they leave slurm.conf, and a deleted NodeSet waits for that.
func TestElasticNodeSetClosesItsRecordsBeforeItIsDeleted(t *testing.T) {
	t.Parallel()
	w := newElasticWorld(t, 2)
	if err := w.Delete(t.Context(), w.set); err != nil {
		t.Fatal(err)
	}
	w.gone(t, "gpu", &slinkyv1beta1.NodeSet{})
	for _, name := range []string{"gpu-0", "gpu-1"} {
		w.node(t, name, "closed", func(node *slurm.Node) bool { return node.DrainedByUs() })
	}
	w.inForce(t, nil, "NodeName=", "SuspendTime")
}

var killStep = flag.Int64("kill-step", 6,
	"TestElasticNodeSetRecoversWhenOperatorIsKilledAtAnyWrite kills the operator after one of so many writes")

// An operator that is killed after any of its writes requeues no job, and its successor leaves no pod behind.
func TestElasticNodeSetRecoversWhenOperatorIsKilledAtAnyWrite(t *testing.T) {
	t.Parallel()
	w := newElasticWorld(t, 2)
	w.stopManager()
	for write := int64(1); ; write += *killStep {
		job := w.submit(t, 2, "sleep 1")
		failing, killed := killAt(server.Config, write)
		stop := w.run(t, failing)
		died := false
		w.until(t, "the end of the job and the power-down", func(ctx context.Context) error {
			select {
			case <-killed:
				died = true
				return nil
			default:
			}
			is, err := w.admin.Job(ctx, job)
			if err == nil && !slices.Contains(is.States, "COMPLETED") {
				err = fmt.Errorf("job %d is %v", job, is.States)
			}
			names, podsErr := w.pods(ctx)
			if podsErr == nil && len(names) > 0 {
				podsErr = fmt.Errorf("there are %v", names)
			}
			return errors.Join(err, podsErr)
		})
		stop()
		stop = w.run(t, server.Config)
		w.jobIs(t, job, "COMPLETED")
		w.hasPods(t)
		for ordinal := range 2 {
			w.node(t, naming.WorkerHost(w.set, ordinal), "powered down", (*slurm.Node).PoweredOff)
		}
		stop()
		if requeued := w.slurm.Requeued(); requeued > 0 {
			t.Fatalf("killed after write %d: a job was requeued", write)
		}
		if !died {
			t.Logf("a job and the power-down of its nodes need less than %d writes", write)
			return
		}
	}
}
