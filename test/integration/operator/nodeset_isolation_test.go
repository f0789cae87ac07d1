//go:build integration

package operator_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

// readyMessageContains waits until the message of the NodeSet's Ready condition contains all texts.
func (w *nodeWorld) readyMessageContains(t *testing.T, set *slinkyv1beta1.NodeSet, texts ...string) {
	t.Helper()
	w.eventually(t, set.Name, set, func() error {
		ready := meta.FindStatusCondition(set.Status.Conditions, slinkyv1beta1.ConditionReady)
		for _, text := range texts {
			if ready == nil || !strings.Contains(ready.Message, text) {
				return fmt.Errorf("the condition is %+v, without %q", ready, text)
			}
		}
		return nil
	})
}

// With two slurmds under one name, Slurm would take the second for a restart of the first, and kill its jobs.
func TestSlurmNodeHasAtMostOnePod(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(2))
	job := w.runJob(t, "gpu-1", time.Hour)
	other := newNodeSet(4)
	other.Name = "other"
	other.Spec.Template.Spec.Raw = []byte(`{"hostname":"gpu-"}`) // so that its nodes are gpu-0, gpu-1, …
	w.create(t, other)
	w.readyMessageContains(t, other, "pod gpu-0 already has Slurm node gpu-0", "pod gpu-1 already has Slurm node gpu-1")
	theirs := &nodeWorld{world: w.world, set: other}
	theirs.hasPods(t, "other-2", "other-3")
	w.ready(t)
	w.node(t, "gpu-1", "busy", (*slurm.Node).Busy)
	w.cancelJob(t, job)
	w.scale(t, 1)
	w.hasPods(t, "gpu-0")
	theirs.hasPods(t, "other-1", "other-2", "other-3")
}

// A bad ordinal blocks nothing but itself, and is named.
func TestBadOrdinalDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	set := newNodeSet(0)
	set.Spec.VolumeClaimTemplates = []slinkyv1beta1.VolumeClaimTemplate{{
		Metadata: slinkyv1beta1.VolumeClaimMetadata{Name: "scratch"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}}
	w := newNodeWorld(t, set)
	foreign := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu-0"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "mine", Image: "mine"}}},
	}
	stuck := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch-gpu-1", Finalizers: []string{"example.com/keep"}},
		Spec:       set.Spec.VolumeClaimTemplates[0].Spec,
	}
	w.create(t, foreign, stuck)
	if err := w.Delete(t.Context(), stuck); err != nil {
		t.Fatal(err)
	}
	w.scale(t, 4)
	w.hasPods(t, "gpu-2", "gpu-3")
	w.readyMessageContains(t, w.set, "pod gpu-0 exists and is not owned by this NodeSet",
		"PVC scratch-gpu-1 is still being deleted")
	w.node(t, "gpu-3", "idle", func(node *slurm.Node) bool { return node.State == slurm.StateIdle })
	w.patch(t, stuck, `{"metadata":{"finalizers":null}}`)
	if err := w.Delete(t.Context(), foreign, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.hasPods(t, "gpu-0", "gpu-1", "gpu-2", "gpu-3")
	w.ready(t)
}

// While Slurm rejects a request about one node, the jobs on other nodes are still protected.
func TestJobsAreProtectedWhileSlurmRejectsRequests(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(3))
	w.runJob(t, "gpu-1", time.Hour)
	w.slurm.Inject(slurmtest.Fault{Path: "node/gpu-2", Respond: slurmtest.Answer(http.StatusInternalServerError,
		`{"errors":[{"error_number":2016,"error":"Requested nodes are busy","description":"it is reserved"}]}`)})
	w.scale(t, 2)
	w.readyMessageContains(t, w.set, "deleting the records of 1 Slurm nodes")
	pod := &corev1.Pod{}
	w.get(t, "gpu-1", pod)
	w.patch(t, pod, `{"metadata":{"labels":{%q:null}}}`, slinkyv1beta1.LabelPodProtect)
	w.eventually(t, "gpu-1", pod, func() error {
		if pod.Labels[slinkyv1beta1.LabelPodProtect] != "true" {
			return fmt.Errorf("its labels are %v", pod.Labels)
		}
		return nil
	})
	w.scale(t, 3) // and pods are created
	w.hasPods(t, "gpu-0", "gpu-1", "gpu-2")
}

// slurmd does not register again when slurmctld has lost its record. Its pod is replaced, unless it has a job.
func TestLostSlurmNodeRecordIsRestored(t *testing.T) {
	t.Parallel()
	set := newNodeSet(2)
	set.Spec.RegistrationTimeout = metav1.Duration{Duration: 10 * time.Second}
	w := newNodeWorld(t, set)
	w.runJob(t, "gpu-0", time.Hour)
	pod := &corev1.Pod{}
	w.eventually(t, "gpu-1", pod,
		func() error { return hasCondition(pod, slinkyv1beta1.PodConditionRegistered, corev1.ConditionTrue) })
	before := w.uids(t)
	w.slurm.ForgetNode("gpu-1")
	w.eventually(t, "gpu-1", pod, func() error {
		if pod.UID != before["gpu-1"] {
			return nil // it has been replaced already
		}
		return hasCondition(pod, slinkyv1beta1.PodConditionRegistered, corev1.ConditionFalse)
	})
	w.until(t, "gpu-1 to be another pod", func(context.Context) error {
		if now := w.uids(t); now["gpu-1"] == before["gpu-1"] {
			return fmt.Errorf("the pods are %v", now)
		}
		return nil
	})
	w.ready(t)
	if now := w.uids(t); now["gpu-0"] != before["gpu-0"] {
		t.Error("the pod with a job was replaced too")
	}
}

func hasCondition(pod *corev1.Pod, kind corev1.PodConditionType, is corev1.ConditionStatus) error {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind && condition.Status == is {
			return nil
		}
	}
	return fmt.Errorf("the conditions are %+v", pod.Status.Conditions)
}

// Node states that a person or Slurm itself has set stay, whatever the operator does meanwhile.
func TestForeignNodeStatesAreKept(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(2))
	if err := w.admin.UpdateNodes(t.Context(), []string{"gpu-1"},
		slurm.NodeUpdate{State: slurm.Fail, Reason: "XID 79"}); err != nil {
		t.Fatal(err)
	}
	failing := func(node *slurm.Node) bool {
		return node.Flags.Has(slurm.FlagFail) && !node.Draining() && node.Reason == "XID 79"
	}
	kubernetesNode := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.kubelet.nodeName}}
	w.patch(t, kubernetesNode, `{"spec":{"unschedulable":true}}`)
	w.node(t, "gpu-0", "drained", (*slurm.Node).DrainedByUs)
	w.waitUntilIdle(t)
	w.node(t, "gpu-1", "failing", failing)
	w.patch(t, kubernetesNode, `{"spec":{"unschedulable":null}}`)
	w.node(t, "gpu-0", "open", func(node *slurm.Node) bool { return !node.Closed() && !slurm.IsOurReason(node.Reason) })
	w.waitUntilIdle(t)
	w.node(t, "gpu-1", "failing", failing)
}

// A reservation is deleted when its update strategy is removed from the spec.
func TestReservationIsDeletedWithItsStrategy(t *testing.T) {
	t.Parallel()
	set := newNodeSet(2)
	start := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
	set.Spec.UpdateStrategy = slinkyv1beta1.NodeSetUpdateStrategy{Type: slinkyv1beta1.ScheduledUpdate,
		ScheduledUpdate: &slinkyv1beta1.NodeSetScheduledUpdate{
			StartTime: &start, Duration: metav1.Duration{Duration: time.Minute},
		}}
	w := newNodeWorld(t, set)
	w.patch(t, w.set, `{"spec":{"extraConf":"Weight=7"}}`)
	reservations := func(want int) func(context.Context) error {
		return func(ctx context.Context) error {
			all, err := w.admin.Reservations(ctx)
			if err == nil && len(all) != want {
				err = fmt.Errorf("there are %+v", all)
			}
			return err
		}
	}
	w.until(t, "a reservation", reservations(1))
	w.stopManager() // so that its memory is lost
	stop := w.run(t, countWrites(server.Config, &w.writes))
	defer stop()
	w.patch(t, w.set, `{"spec":{"updateStrategy":{"type":"OnDelete","scheduledUpdate":null}}}`)
	w.until(t, "no reservation", reservations(0))
}

// An external slurmctld and its jobs survive deletion of the Controller.
func TestDeletionWaitsForAnExternalSlurmctld(t *testing.T) {
	t.Parallel()
	w := &nodeWorld{world: newWorld(t), set: newNodeSet(2)}
	key := make([]byte, 32)
	w.slurm.SetKey(key)
	w.slurm.AddNodes("node-0")
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"},
		Spec: slinkyv1beta1.ControllerSpec{
			External: true, ExternalConfig: &slinkyv1beta1.ExternalConfig{Host: "slurmctld.example.com"},
			SlurmKeyRef: &slinkyv1beta1.SecretKeyReference{Name: "keys", Key: "slurm.key"},
			JWTKeyRef:   &slinkyv1beta1.SecretKeyReference{Name: "keys", Key: "jwt_hs256.key"},
		}}
	w.create(t,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"},
			Data: map[string][]byte{"slurm.key": key, "jwt_hs256.key": key}}, controller,
		&slinkyv1beta1.RestApi{ObjectMeta: metav1.ObjectMeta{Name: "slurm"},
			Spec: slinkyv1beta1.RestApiSpec{ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}}})
	admin, err := w.dial(rest.Options{
		Token: func(context.Context) (string, error) { return w.slurm.Token("root"), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.kubelet, w.admin = w.startKubelet(t), admin
	w.create(t, w.set)
	w.ready(t)
	w.runJob(t, "gpu-1", time.Hour)
	if err := w.Delete(t.Context(), controller); err != nil {
		t.Fatal(err)
	}
	w.gone(t, "slurm", controller)
	if err := w.Delete(t.Context(), w.set); err != nil {
		t.Fatal(err)
	}
	w.is(t, slinkyv1beta1.ConditionScaledIn, metav1.ConditionFalse, slinkyv1beta1.ReasonWaitingForSlurm)
	w.waitUntilIdle(t)
	w.hasPods(t, "gpu-0", "gpu-1")
	w.patch(t, w.set, `{"metadata":{"annotations":{%q:"true"}}}`, slinkyv1beta1.AnnotationDeleteWithoutDrain)
	w.gone(t, "gpu", w.set)
}

// A NoSchedule taint, and a Node object that is deleted and registers again, cost no pod, no PVC and no job.
func TestDaemonSetModeKeepsPodsLikeADaemonSet(t *testing.T) {
	t.Parallel()
	set := newNodeSet(0)
	set.Spec.ScalingMode = slinkyv1beta1.ScalingModeDaemonSet
	set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = slinkyv1beta1.DeletePVC
	w := &nodeWorld{world: newWorld(t), set: set}
	set.Spec.Template.Spec.Raw = fmt.Appendf(nil, `{"nodeSelector":{"world":%q}}`, w.namespace)
	w.start(t)
	before := w.uids(t)
	kubernetesNode := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.kubelet.nodeName}}
	w.patch(t, kubernetesNode, `{"spec":{"taints":[{"key":"example.com/repair","effect":"NoSchedule"}]}}`)
	w.waitUntilIdle(t)
	name := naming.NodeWorkerHost(set, kubernetesNode.Name)
	open := func(node *slurm.Node) bool { return !node.Closed() }
	w.node(t, name, "open for jobs", open)
	if err := w.Delete(t.Context(), kubernetesNode); err != nil {
		t.Fatal(err)
	}
	w.waitUntilIdle(t)
	w.node(t, name, "open for jobs", open)
	w.create(t, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: kubernetesNode.Name, Labels: map[string]string{"world": w.namespace}},
	})
	w.ready(t)
	w.waitUntilIdle(t)
	if after := w.uids(t); fmt.Sprint(before) != fmt.Sprint(after) || len(after) != 1 {
		t.Errorf("the pods were %v and are %v", before, after)
	}
}
