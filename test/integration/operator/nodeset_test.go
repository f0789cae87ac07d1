//go:build integration

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

// newNodeSet returns a NodeSet of the Controller slurm.
func newNodeSet(replicas int32) *slinkyv1beta1.NodeSet {
	return &slinkyv1beta1.NodeSet{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
		Spec: slinkyv1beta1.NodeSetSpec{
			ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}, Replicas: &replicas,
		},
	}
}

// A nodeWorld is a world with a ready Controller, a kubelet, and a NodeSet.
type nodeWorld struct {
	*world
	kubelet *kubelet
	set     *slinkyv1beta1.NodeSet
	admin   slurm.Client
}

// newNodeWorld creates a NodeSet and waits until it is ready.
func newNodeWorld(t *testing.T, set *slinkyv1beta1.NodeSet) *nodeWorld {
	t.Helper()
	w := &nodeWorld{world: newWorld(t), set: set}
	w.start(t)
	return w
}

// start starts a kubelet and a cluster, creates the NodeSet, and waits until it is ready.
func (w *nodeWorld) start(t *testing.T) {
	t.Helper()
	w.kubelet = w.startKubelet(t)
	w.readyController(t)
	admin, err := w.dial(rest.Options{
		Token: func(context.Context) (string, error) { return w.slurm.Token("root"), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.admin = admin
	w.create(t, w.set)
	w.ready(t)
}

// ready waits until the NodeSet is ready.
func (w *nodeWorld) ready(t *testing.T) {
	t.Helper()
	w.is(t, slinkyv1beta1.ConditionReady, metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected)
}

func (w *nodeWorld) is(t *testing.T, kind string, is metav1.ConditionStatus, reason string) {
	t.Helper()
	w.eventually(t, w.set.Name, w.set,
		func() error { return condition(w.set, w.set.Status.Conditions, kind, is, reason) })
}

func (w *nodeWorld) scale(t *testing.T, replicas int32) {
	t.Helper()
	w.patch(t, w.set, `{"spec":{"replicas":%d}}`, replicas)
}

// pods returns the names of the pods that are not being deleted.
func (w *nodeWorld) pods(ctx context.Context) ([]string, error) {
	pods := &corev1.PodList{}
	if err := w.List(ctx, pods, client.MatchingLabels(naming.Selector(naming.Slurmd, w.set.Name))); err != nil {
		return nil, err
	}
	var names []string
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			names = append(names, pods.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// uids returns the UIDs of the pods by name.
func (w *nodeWorld) uids(t *testing.T) map[string]types.UID {
	t.Helper()
	pods := &corev1.PodList{}
	if err := w.List(t.Context(), pods, client.MatchingLabels(naming.Selector(naming.Slurmd, w.set.Name))); err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for i := range pods.Items {
		uids[pods.Items[i].Name] = pods.Items[i].UID
	}
	return uids
}

// hasPods waits until the set has exactly these pods.
func (w *nodeWorld) hasPods(t *testing.T, want ...string) {
	t.Helper()
	w.until(t, fmt.Sprintf("pods %v", want), func(ctx context.Context) error {
		got, err := w.pods(ctx)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("the pods are %v", got)
		}
		return err
	})
}

// until waits until a check returns no error.
func (w *nodeWorld) until(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	w.await(t, what, named(w.set, w.set.Name), check)
}

// node waits until Slurm's record of a node passes a check.
func (w *nodeWorld) node(t *testing.T, name, what string, check func(*slurm.Node) bool) {
	t.Helper()
	w.until(t, name+" to be "+what, func(ctx context.Context) error {
		node, err := w.admin.Node(ctx, name)
		if err == nil && !check(&node) {
			err = fmt.Errorf("it is %v, %q, comment %q", node.StateNames(), node.Reason, node.Comment)
		}
		return err
	})
}

// runJob starts a job on a node, which runs until it is cancelled.
func (w *nodeWorld) runJob(t *testing.T, node string, limit time.Duration) int64 {
	t.Helper()
	job, err := w.slurm.Submitter("root").Submit(t.Context(), slurmtest.JobRequest{
		Name: "long", Script: "#!/bin/sh\nsleep 100000", Nodes: 1, RequiredNodes: []string{node}, TimeLimit: limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.node(t, node, "busy", (*slurm.Node).Busy)
	return job
}

func (w *nodeWorld) cancelJob(t *testing.T, job int64) {
	t.Helper()
	if err := w.slurm.Submitter("root").Cancel(t.Context(), job); err != nil {
		t.Fatal(err)
	}
}

// slurmctld kills all jobs of a partition that is removed, so a partition that the spec no longer has stays until its
// last job has ended.
func TestPartitionIsRemovedAfterItsLastJob(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(1))
	stop := w.acceptEverything(t)
	defer stop()
	controller, live := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}}, &corev1.ConfigMap{}
	has := func(line string, want bool) func() error {
		return func() error {
			if conf := live.Data["slurm.conf"]; strings.Contains(conf, line+"\n") != want {
				return fmt.Errorf("slurm.conf has %s: %t, want %t:\n%s", line, !want, want, conf)
			}
			return nil
		}
	}
	w.patch(t, controller, `{"spec":{"extraConf":"PartitionName=all Nodes=ALL Default=YES"}}`)
	w.eventually(t, "slurm-config", live, has("PartitionName=all Nodes=ALL Default=YES", true))
	job := w.runJob(t, "gpu-0", time.Hour)
	w.patch(t, controller, `{"spec":{"extraConf":""}}`)
	w.eventually(t, "slurm-config", live, has("PartitionName=all Nodes=ALL State=DRAIN", true))
	w.eventually(t, "slurm", controller, func() error {
		applied := meta.FindStatusCondition(controller.Status.Conditions, slinkyv1beta1.ConditionConfigurationApplied)
		if applied == nil || applied.Status != metav1.ConditionTrue ||
			!strings.Contains(applied.Message, "partition all") {
			return fmt.Errorf("the condition is %+v", applied)
		}
		return nil
	})
	w.waitUntilIdle(t)
	w.eventually(t, "slurm-config", live, has("PartitionName=all Nodes=ALL State=DRAIN", true))
	w.cancelJob(t, job)
	w.eventually(t, "slurm-config", live, func() error {
		if strings.Contains(live.Data["slurm.conf"], "PartitionName=all") {
			return errors.New("the partition still exists")
		}
		return nil
	})
}

// A node that registers before slurmctld knows its GRES never gets it, so its pod is created only when slurmctld does.
func TestPodsWaitUntilSlurmctldKnowsTheirGres(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(0))
	w.patch(t, w.set, `{"spec":{"replicas":1,"slurmd":{"resources":{"limits":{"nvidia.com/gpu":"2"}}}}}`)
	w.is(t, slinkyv1beta1.ConditionReady, metav1.ConditionFalse, slinkyv1beta1.ReasonControllerNotReady)
	w.waitUntilIdle(t)
	w.hasPods(t)
	stop := w.acceptEverything(t)
	defer stop()
	w.hasPods(t, "gpu-0")
	w.ready(t)
}

func TestNodeSetBecomesReady(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(3))
	w.hasPods(t, "gpu-0", "gpu-1", "gpu-2")
	is := w.set.Status
	if is.Desired != 3 || is.Replicas != 3 || is.ReadyReplicas != 3 || is.UpdatedReplicas != 3 || is.SlurmIdle != 3 ||
		is.UnavailableReplicas != 0 {
		t.Errorf("the status is %+v", is)
	}
	w.node(t, "gpu-1", "described", func(node *slurm.Node) bool {
		owner, err := slurm.ParseOwner(node.Comment)
		return err == nil && owner.PodName == "gpu-1" && owner.NodeSetUID == string(w.set.UID)
	})
	w.waitUntilIdle(t)
}

// An idle mirror polls rarely, but a newly registered node is seen immediately.
func TestNewNodesAreSeenImmediately(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(1))
	w.stopManager()
	w.mirror.Fast, w.mirror.Slow = time.Hour, time.Hour
	stop := w.run(t, countWrites(server.Config, &w.writes))
	defer stop()
	w.scale(t, 2)
	w.ready(t)
	w.waitUntilIdle(t)
	w.scale(t, 3)
	w.ready(t)
}

func TestScaleInWaitsForJobs(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(4))
	short, middle := w.runJob(t, "gpu-1", time.Hour), w.runJob(t, "gpu-3", 2*time.Hour)
	w.runJob(t, "gpu-2", 3*time.Hour)
	w.scale(t, 1)
	w.hasPods(t, "gpu-1", "gpu-2", "gpu-3") // the idle one is deleted immediately
	w.eventually(t, "gpu", w.set, func() error {
		scaledIn := meta.FindStatusCondition(w.set.Status.Conditions, slinkyv1beta1.ConditionScaledIn)
		if want := fmt.Sprintf("waiting for 2 nodes: gpu-1 runs job %d until ",
			short); !strings.HasPrefix(scaledIn.Message, want) {
			return fmt.Errorf("the message is %q", scaledIn.Message)
		}
		return condition(w.set, w.set.Status.Conditions, slinkyv1beta1.ConditionScaledIn, metav1.ConditionFalse,
			slinkyv1beta1.ReasonDraining)
	})
	w.node(t, "gpu-3", "drained by us", (*slurm.Node).DrainedByUs)
	w.cancelJob(t, middle)
	w.hasPods(t, "gpu-1", "gpu-2")
	w.cancelJob(t, short)
	w.hasPods(t, "gpu-2")
	w.ready(t)
}

func TestScaleInIsReversed(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(3))
	for _, node := range []string{"gpu-0", "gpu-1", "gpu-2"} {
		w.runJob(t, node, time.Hour)
	}
	w.scale(t, 1)
	w.is(t, slinkyv1beta1.ConditionScaledIn, metav1.ConditionFalse, slinkyv1beta1.ReasonDraining)
	w.scale(t, 3)
	w.is(t, slinkyv1beta1.ConditionScaledIn, metav1.ConditionTrue, slinkyv1beta1.ReasonNoExcess)
	for _, node := range []string{"gpu-0", "gpu-1", "gpu-2"} {
		w.node(t, node, "open for jobs", func(node *slurm.Node) bool { return !node.Draining() })
	}
	w.ready(t)
	w.waitUntilIdle(t)
}

func TestUpdateDrainsNodesFirst(t *testing.T) {
	t.Parallel()
	set := newNodeSet(4)
	set.Spec.UpdateStrategy.RollingUpdate = &slinkyv1beta1.NodeSetRollingUpdate{
		MaxUnavailable: new(intstr.FromInt32(1)),
	}
	w := newNodeWorld(t, set)
	job := w.runJob(t, "gpu-3", time.Hour)
	before := w.uids(t)
	w.patch(t, w.set, `{"spec":{"extraConf":"Weight=7"}}`)
	w.until(t, "three updated pods", func(context.Context) error {
		if w.get(t, "gpu", w.set); w.set.Status.UpdatedReplicas != 3 {
			return fmt.Errorf("%d are updated", w.set.Status.UpdatedReplicas)
		}
		return nil
	})
	w.is(t, slinkyv1beta1.ConditionUpdateInProgress, metav1.ConditionTrue, slinkyv1beta1.ReasonUpdating)
	if now := w.uids(t); now["gpu-3"] != before["gpu-3"] {
		t.Fatal("the pod with a job was replaced")
	}
	w.cancelJob(t, job)
	w.ready(t)
	for name, uid := range w.uids(t) {
		if before[name] == uid {
			t.Errorf("%s is still the old pod", name)
		}
		w.node(t, name, "open for jobs", func(node *slurm.Node) bool { return !node.Draining() })
	}
	w.waitUntilIdle(t)
}

func TestBrokenRevisionStopsRollout(t *testing.T) {
	t.Parallel()
	set := newNodeSet(4)
	set.Spec.RegistrationTimeout = metav1.Duration{Duration: 10 * time.Second}
	w := newNodeWorld(t, set)
	good := w.set.Status.NodeSetHash
	w.kubelet.breakOtherRevisions(good)
	w.patch(t, w.set, `{"spec":{"extraConf":"Weight=7"}}`)
	w.is(t, slinkyv1beta1.ConditionDegraded, metav1.ConditionTrue, slinkyv1beta1.ReasonUpdateStopped)
	old := &corev1.PodList{}
	if err := w.List(t.Context(), old,
		client.MatchingLabels{appsv1.ControllerRevisionHashLabelKey: good}); err != nil || len(old.Items) != 3 {
		t.Fatalf("%d pods of the old revision are left: %v", len(old.Items), err)
	}
	for i := range old.Items {
		w.node(t, old.Items[i].Name, "open for jobs", func(node *slurm.Node) bool { return !node.Draining() })
	}
	w.patch(t, w.set, `{"spec":{"extraConf":null}}`)
	w.ready(t)
	if w.set.Status.NodeSetHash != good {
		t.Errorf("the revision is %s instead of %s", w.set.Status.NodeSetHash, good)
	}
}

func TestForeignDrainsAreKept(t *testing.T) {
	t.Parallel()
	set := newNodeSet(2)
	set.Spec.UpdateStrategy.RollingUpdate = &slinkyv1beta1.NodeSetRollingUpdate{
		MaxUnavailable: new(intstr.FromInt32(2)),
	}
	w := newNodeWorld(t, set)
	if err := w.admin.UpdateNodes(t.Context(), []string{"gpu-1"},
		slurm.NodeUpdate{State: slurm.Drain, Reason: "bad disk"}); err != nil {
		t.Fatal(err)
	}
	w.patch(t, w.set, `{"spec":{"extraConf":"Weight=7"}}`)
	w.is(t, slinkyv1beta1.ConditionUpdateInProgress, metav1.ConditionFalse, slinkyv1beta1.ReasonUpToDate)
	w.waitUntilIdle(t)
	w.node(t, "gpu-1", "drained for the bad disk",
		func(node *slurm.Node) bool { return node.Draining() && node.Reason == "bad disk" })
}

func TestCordonDrainsSlurmNode(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(2))
	pod := &corev1.Pod{}
	w.get(t, "gpu-0", pod)
	w.patch(t, pod, `{"metadata":{"annotations":{%q:"true"}}}`, slinkyv1beta1.AnnotationPodCordon)
	w.node(t, "gpu-0", "drained", (*slurm.Node).DrainedByUs)
	w.node(t, "gpu-1", "open", func(node *slurm.Node) bool { return !node.Draining() })
	w.get(t, "gpu-0", pod)
	w.patch(t, pod, `{"metadata":{"annotations":{%q:null}}}`, slinkyv1beta1.AnnotationPodCordon)
	w.node(t, "gpu-0", "open", func(node *slurm.Node) bool { return !node.Draining() })

	kubernetesNode := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.kubelet.nodeName}}
	w.patch(t, kubernetesNode, `{"metadata":{"annotations":{%q:"new fans"}},"spec":{"unschedulable":true}}`,
		slinkyv1beta1.AnnotationNodeCordonReason)
	for _, node := range []string{"gpu-0", "gpu-1"} {
		w.node(t, node, "drained", func(node *slurm.Node) bool { return node.Reason == "slurm-operator: new fans" })
	}
	w.patch(t, kubernetesNode, `{"spec":{"unschedulable":null}}`)
	for _, node := range []string{"gpu-0", "gpu-1"} {
		w.node(t, node, "open", func(node *slurm.Node) bool { return !node.Draining() })
	}
}

func TestNoPodIsDeletedWhileSlurmIsUnreachable(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(2))
	w.slurm.StopController()
	w.is(t, slinkyv1beta1.ConditionSlurmReachable, metav1.ConditionFalse, slinkyv1beta1.ReasonControllerNotReady)
	w.scale(t, 0)
	w.is(t, slinkyv1beta1.ConditionScaledIn, metav1.ConditionFalse, slinkyv1beta1.ReasonWaitingForSlurm)
	w.waitUntilIdle(t)
	w.hasPods(t, "gpu-0", "gpu-1")
	w.slurm.StartController()
	w.hasPods(t)
	w.ready(t)
}

func TestDeletionDrainsFirst(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(2))
	job := w.runJob(t, "gpu-1", time.Hour)
	if err := w.Delete(t.Context(), w.set); err != nil {
		t.Fatal(err)
	}
	w.hasPods(t, "gpu-1")
	w.is(t, slinkyv1beta1.ConditionReady, metav1.ConditionFalse, slinkyv1beta1.ReasonDeleting)
	w.cancelJob(t, job)
	w.gone(t, "gpu", w.set)
	w.hasPods(t)
}

func TestDeletionWithoutDrain(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(2))
	w.runJob(t, "gpu-1", time.Hour)
	if err := w.Delete(t.Context(), w.set); err != nil {
		t.Fatal(err)
	}
	w.hasPods(t, "gpu-1")
	w.patch(t, w.set, `{"metadata":{"annotations":{%q:"true"}}}`, slinkyv1beta1.AnnotationDeleteWithoutDrain)
	w.gone(t, "gpu", w.set)
	w.hasPods(t)
}

func TestDeletionWithoutACluster(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(2))
	w.runJob(t, "gpu-1", time.Hour)
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}}
	if err := w.Delete(t.Context(), controller); err != nil {
		t.Fatal(err)
	}
	w.gone(t, "slurm", controller)
	w.hasPods(t, "gpu-0", "gpu-1")
	if err := w.Delete(t.Context(), w.set); err != nil {
		t.Fatal(err)
	}
	// slurmctld's pod may still be terminating, and until it is gone its jobs are not lost.
	w.is(t, slinkyv1beta1.ConditionScaledIn, metav1.ConditionFalse, slinkyv1beta1.ReasonWaitingForSlurm)
	w.hasPods(t, "gpu-0", "gpu-1")
	slurmctld := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "slurm-controller-0"}}
	if err := w.Delete(t.Context(), slurmctld, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.gone(t, "gpu", w.set)
}

// A pod is protected from its creation until Slurm shows its node drained and without jobs.
func TestBusyPodsAreProtected(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(2))
	pod := &corev1.Pod{}
	protected := func(want bool) error {
		if got := pod.Labels[slinkyv1beta1.LabelPodProtect] == "true"; got != want {
			return fmt.Errorf("protected: %t, want %t; annotations %v", got, want, pod.Annotations)
		}
		return nil
	}
	w.eventually(t, "gpu-1", pod, func() error { return errors.Join(protected(true), hasState(pod, "Idle")) })
	job := w.runJob(t, "gpu-1", time.Hour)
	w.eventually(t, "gpu-1", pod, func() error {
		deadline, err := time.Parse(time.RFC3339, pod.Annotations[slinkyv1beta1.AnnotationPodDeadline])
		if err != nil || time.Until(deadline) > time.Hour {
			return fmt.Errorf("annotations %v: %w", pod.Annotations, err)
		}
		return errors.Join(protected(true), hasState(pod, "Mixed"))
	})
	budget := &policyv1.PodDisruptionBudget{}
	w.get(t, "gpu", budget)
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
		t.Errorf("the budget %+v does not protect the pod: %v", budget.Spec, err)
	}
	// Any other budget is compared with spec.replicas, which a scale-in lowers long before the pods are deleted.
	if least := budget.Spec.MinAvailable; least == nil || least.Type != intstr.Int || least.IntVal < 65536 ||
		budget.Spec.MaxUnavailable != nil {
		t.Errorf("the budget %+v can be met", budget.Spec)
	}
	kubernetesNode := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.kubelet.nodeName}}
	w.patch(t, kubernetesNode, `{"spec":{"unschedulable":true}}`)
	w.eventually(t, "gpu-0", pod, func() error { return protected(false) })
	w.eventually(t, "gpu-1", pod,
		func() error { return errors.Join(hasStates(pod, "Mixed", "Drain"), protected(true)) })
	w.cancelJob(t, job)
	w.eventually(t, "gpu-1", pod, func() error { return protected(false) })
	w.patch(t, kubernetesNode, `{"spec":{"unschedulable":null}}`)
	for _, name := range []string{"gpu-0", "gpu-1"} {
		w.node(t, name, "open for jobs", func(node *slurm.Node) bool { return !node.Draining() })
		w.get(t, name, pod) // it was protected before
		if err := protected(true); err != nil {
			t.Errorf("%s accepts jobs: %v", name, err)
		}
	}
}

// A pod whose slurmd has not started, for example because its image is being pulled, is protected however long
// slurmctld has been running without its node: slurmd may start and get a job at any time. Kubernetes evicts it all the
// same.
func TestPodsAreProtectedBeforeTheyStart(t *testing.T) {
	t.Parallel()
	w := &nodeWorld{world: newWorld(t), set: newNodeSet(1)}
	w.slurm.SetUptime(time.Hour)
	w.start(t)
	w.kubelet.breakOtherRevisions("none")
	w.scale(t, 3)
	w.hasPods(t, "gpu-0", "gpu-1", "gpu-2")
	pod := &corev1.Pod{}
	waiting := func() error {
		if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Waiting == nil {
			return fmt.Errorf("its status is %+v", pod.Status)
		}
		return nil
	}
	for _, name := range []string{"gpu-1", "gpu-2"} {
		w.eventually(t, name, pod, waiting)
	}
	w.waitUntilIdle(t)
	for _, name := range []string{"gpu-1", "gpu-2"} {
		w.get(t, name, pod)
		if pod.Labels[slinkyv1beta1.LabelPodProtect] != "true" {
			t.Errorf("%s is not protected", name)
		}
	}
	uid := pod.UID
	if err := w.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}); err != nil {
		t.Errorf("a pod that has not started cannot be evicted: %v", err)
	}
	w.kubelet.breakOtherRevisions("")
	w.ready(t)
	if w.get(t, "gpu-2", pod); pod.UID == uid {
		t.Error("the evicted pod is still there")
	}
}

// hasState returns an error unless the conditions of a pod show exactly this state of its Slurm node.
func hasState(pod *corev1.Pod, state string) error { return hasStates(pod, state) }

// hasStates returns an error unless the conditions of a pod show exactly these states of its Slurm node.
func hasStates(pod *corev1.Pod, states ...string) error {
	var found []string
	for _, condition := range pod.Status.Conditions {
		if name, ours := strings.CutPrefix(string(condition.Type), slinkyv1beta1.PodConditionPrefix); ours &&
			name != "DynamicNorm" {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	slices.Sort(states)
	if !slices.Equal(found, states) {
		return fmt.Errorf("it shows the states %v", found)
	}
	return nil
}

// A scheduled update reserves the nodes, waits for the window, replaces the pods in it, and deletes the reservation.
func TestScheduledUpdateReservesItsNodes(t *testing.T) {
	t.Parallel()
	set := newNodeSet(2)
	start := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
	set.Spec.UpdateStrategy = slinkyv1beta1.NodeSetUpdateStrategy{Type: slinkyv1beta1.ScheduledUpdate,
		ScheduledUpdate: &slinkyv1beta1.NodeSetScheduledUpdate{
			StartTime: &start, Duration: metav1.Duration{Duration: time.Minute}, Flags: []string{"FLEX"},
		}}
	w := newNodeWorld(t, set)
	before := w.uids(t)
	w.patch(t, w.set, `{"spec":{"extraConf":"Weight=7"}}`)
	w.is(t, slinkyv1beta1.ConditionUpdateInProgress, metav1.ConditionFalse, slinkyv1beta1.ReasonUpdateScheduled)
	w.until(t, "a reservation", func(ctx context.Context) error {
		all, err := w.admin.Reservations(ctx)
		if err != nil || len(all) != 1 || all[0].Nodes != "gpu-[0-1]" || !all[0].Start.Equal(start.Time) ||
			!slices.Contains(all[0].Flags, "FLEX") {
			return fmt.Errorf("there are %+v: %w", all, err)
		}
		return nil
	})
	if now := w.uids(t); !maps.Equal(now, before) {
		t.Errorf("pods were replaced before the window: %v", now)
	}
	// The window opens only now, however slow the computer is.
	start = metav1.NewTime(time.Now().Add(2 * time.Second).Truncate(time.Second))
	w.patch(t, w.set, `{"spec":{"updateStrategy":{"scheduledUpdate":{"startTime":%q,"duration":"24h"}}}}`,
		start.UTC().Format(time.RFC3339))
	w.is(t, slinkyv1beta1.ConditionUpdateInProgress, metav1.ConditionFalse, slinkyv1beta1.ReasonUpToDate)
	if time.Now().Before(start.Time) {
		t.Error("the update finished before the window")
	}
	w.until(t, "no reservation", func(ctx context.Context) error {
		all, err := w.admin.Reservations(ctx)
		if err == nil && len(all) != 0 {
			err = fmt.Errorf("there are %+v", all)
		}
		return err
	})
}

// The cluster's key comes from its Accounting. While the Accounting is missing, no pod is created with another key, and
// none is replaced.
func TestNodeSetKeepsPodsWhileAccountingIsMissing(t *testing.T) {
	t.Parallel()
	w := &nodeWorld{world: newWorld(t), set: newNodeSet(1)}
	books := func() *slinkyv1beta1.Accounting {
		made := newAccounting()
		made.Name = "books"
		return made
	}
	first := books()
	w.create(t, first)
	w.kubelet = w.startKubelet(t)
	w.readyControllerWith(t, slinkyv1beta1.ControllerSpec{AccountingRef: &slinkyv1beta1.ObjectReference{Name: "books"}},
		"books-auth-jwths256")
	w.create(t, w.set)
	w.ready(t)
	before := w.uids(t)
	if err := w.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.is(t, slinkyv1beta1.ConditionDegraded, metav1.ConditionTrue, slinkyv1beta1.ReasonAccountingNotReady)
	w.create(t, books())
	w.ready(t)
	if after := w.uids(t); !maps.Equal(before, after) {
		t.Errorf("the pods were %v and are %v", before, after)
	}
}
