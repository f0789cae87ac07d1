//go:build integration

package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

const hashAnnotation = "controller.slinky.slurm.net/config-hash"

func TestControllerBecomesReady(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	for _, kind := range []string{slinkyv1beta1.ConditionSlurmReachable, slinkyv1beta1.ConditionConfigurationApplied} {
		if !slices.ContainsFunc(controller.Status.Conditions, func(condition metav1.Condition) bool {
			return condition.Type == kind && condition.Status == metav1.ConditionTrue
		}) {
			t.Errorf("conditions are %v", controller.Status.Conditions)
		}
	}
	if controller.Status.SlurmVersion != "26.05.5" || controller.Status.APIVersion != "v0.0.45" ||
		controller.Status.Nodes.Total != 1 {
		t.Errorf("status is %+v", controller.Status)
	}
	live := &corev1.ConfigMap{}
	world.get(t, "slurm-config", live)
	if controller.Status.AppliedConfigHash != live.Annotations[hashAnnotation] {
		t.Errorf("the applied hash is %s, want %s", controller.Status.AppliedConfigHash,
			live.Annotations[hashAnnotation])
	}
}

func TestControllerCreatesItsChildren(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	var documents []string
	for _, child := range []struct {
		object *unstructured.Unstructured
		owned  bool
	}{
		{object("slurm-controller", corev1.SchemeGroupVersion.WithKind("Service")), true},
		{object("slurm-controller-0", corev1.SchemeGroupVersion.WithKind("Service")), true},
		{object("slurm-controller", corev1.SchemeGroupVersion.WithKind("ServiceAccount")), true},
		{object("slurm-config", corev1.SchemeGroupVersion.WithKind("ConfigMap")), true},
		{object("slurm-controller-state", corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")), false},
		{object("slurm-controller", appsv1.SchemeGroupVersion.WithKind("StatefulSet")), true},
	} {
		world.get(t, child.object.GetName(), child.object)
		if owned := metav1.IsControlledBy(child.object, controller); owned != child.owned {
			t.Errorf("%s %s is owned by %v", child.object.GetKind(), child.object.GetName(),
				child.object.GetOwnerReferences())
		}
		documents = append(documents, world.anonymous(t, child.object))
	}
	golden.Compare(t, "controller.yaml", strings.Join(documents, "---\n"))
}

func TestControllerRepairsItsChildrenAndKeepsForeignFields(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	world.readyController(t)
	set := &appsv1.StatefulSet{}
	world.get(t, "slurm-controller", set)
	world.patch(t, set, `{"metadata":{"annotations":{"example.com/mine":"yes"}},"spec":{"replicas":3}}`)
	world.eventually(t, "slurm-controller", set, func() error {
		if *set.Spec.Replicas != 1 || set.Annotations["example.com/mine"] != "yes" {
			return fmt.Errorf("replicas %d, annotations %v", *set.Spec.Replicas, set.Annotations)
		}
		return nil
	})
	service := &corev1.Service{}
	world.get(t, "slurm-controller", service)
	if err := world.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	world.eventually(t, "slurm-controller", &corev1.Service{}, func() error { return nil })
}

// Slurm's commands retry for minutes if a configured name does not resolve. So a slurmctld gets its Service before the
// configuration names it, and keeps it until slurmctld runs with a configuration that does not.
func TestEveryConfiguredSlurmctldHasAService(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	names := func(count int) func() error {
		live := &corev1.ConfigMap{}
		return func() error {
			world.get(t, "slurm-config", live)
			if got := strings.Count(live.Data["slurm.conf"], "SlurmctldHost="); got != count {
				return fmt.Errorf("%d slurmctlds are configured, not %d", got, count)
			}
			return nil
		}
	}
	world.patch(t, controller, `{"spec":{"ha":{"enabled":true,"backups":1}}}`)
	backup := &corev1.Service{}
	world.eventually(t, "slurm-controller-1", backup, names(1))
	stop := world.acceptEverything(t)
	world.eventually(t, "slurm-controller-1", backup, names(2))
	stop()
	// Report that slurmctld runs with it; the next change would otherwise return to the hash that it still reports.
	live := &corev1.ConfigMap{}
	world.get(t, "slurm-config", live)
	world.setAgent(agentWith(live))

	world.patch(t, controller, `{"spec":{"ha":{"enabled":false}}}`)
	world.finishValidation(t, validation.Report{Outcome: validation.Accepted, SlurmVersion: "26.05.5"})
	world.eventually(t, "slurm-controller-1", backup, names(1))
	world.get(t, "slurm-config", live)
	world.setAgent(agentWith(live))
	world.gone(t, "slurm-controller-1", backup)
	world.get(t, "slurm-controller-0", &corev1.Service{})
}

// I14: a configuration that slurmctld refuses never replaces a working one.
func TestRefusedConfigurationIsNotRolledOut(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	good := &corev1.ConfigMap{}
	world.get(t, "slurm-config", good)
	started := &appsv1.StatefulSet{}
	world.get(t, "slurm-controller", started)

	world.patch(t, controller, `{"spec":{"extraConf":"SelectType=select/nope"}}`)
	world.finishValidation(t, validation.Report{
		Outcome: validation.Refused, SlurmVersion: "26.05.5", Detail: "slurm.conf line 21: cannot find select plugin",
	})
	world.eventually(t, "slurm", controller, func() error {
		return errors.Join(
			condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionConfigurationApplied,
				metav1.ConditionFalse, slinkyv1beta1.ReasonRefused),
			condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionDegraded, metav1.ConditionTrue,
				slinkyv1beta1.ReasonRefused))
	})
	world.warns(t, slinkyv1beta1.ReasonRefused, "slurm.conf line 21")
	live, now := &corev1.ConfigMap{}, &appsv1.StatefulSet{}
	world.get(t, "slurm-config", live)
	world.get(t, "slurm-controller", now)
	if live.Annotations[hashAnnotation] != good.Annotations[hashAnnotation] ||
		live.Data["slurm.conf"] != good.Data["slurm.conf"] {
		t.Error("the refused configuration was promoted")
	}
	if now.Generation != started.Generation {
		t.Error("the StatefulSet was changed")
	}

	world.patch(t, controller, `{"spec":{"extraConf":"SchedulerType=sched/builtin"}}`)
	world.finishValidation(t, validation.Report{Outcome: validation.Accepted, SlurmVersion: "26.05.5"})
	world.eventually(t, "slurm-config", live, func() error {
		if !strings.Contains(live.Data["slurm.conf"], "sched/builtin") {
			return errors.New("the valid configuration was not promoted")
		}
		return nil
	})
	world.setAgent(agentWith(live))
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionTrue,
			slinkyv1beta1.ReasonAsExpected)
	})
}

// I13: slurmctld never restarts because of a new NodeSet or a new partition.
func TestNodeSetsChangeConfigurationWithoutRestart(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	started := &appsv1.StatefulSet{}
	world.get(t, "slurm-controller", started)
	for i := range 3 {
		world.create(t,
			&slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("workers-%d", i)},
				Spec: slinkyv1beta1.NodeSetSpec{
					ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"},
					Partition:     slinkyv1beta1.NodeSetPartition{Enabled: true},
				}})
	}
	stop := world.acceptEverything(t)
	defer stop()
	live := &corev1.ConfigMap{}
	world.eventually(t, "slurm-config", live, func() error {
		if count := strings.Count(live.Data["slurm.conf"], "PartitionName=workers-"); count != 3 {
			return fmt.Errorf("%d of 3 partitions", count)
		}
		return nil
	})
	now := &appsv1.StatefulSet{}
	world.get(t, "slurm-controller", now)
	if now.Generation != started.Generation {
		t.Error("the StatefulSet was changed")
	}
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionTrue,
			slinkyv1beta1.ReasonAsExpected)
	})
}

// I6: edits to referenced ConfigMaps are applied.
func TestEditedConfigFilesAreApplied(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	files := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "files"}, Data: map[string]string{"gres.conf": "AutoDetect=off\n"},
	}
	world.create(t, files)
	controller := world.readyController(t)
	stop := world.acceptEverything(t)
	defer stop()
	world.patch(t, controller, `{"spec":{"configFileRefs":[{"name":"files"}]}}`)
	live := &corev1.ConfigMap{}
	world.eventually(t, "slurm-config", live, func() error { return hasFile(live, "gres.conf", "AutoDetect=off\n") })
	files.Data["gres.conf"] = "AutoDetect=nvml\n"
	if err := world.Update(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	world.eventually(t, "slurm-config", live, func() error { return hasFile(live, "gres.conf", "AutoDetect=nvml\n") })
	world.eventually(t, "slurm", controller, func() error {
		if controller.Status.AppliedConfigHash != live.Annotations[hashAnnotation] {
			return fmt.Errorf("the applied hash is %s", controller.Status.AppliedConfigHash)
		}
		return nil
	})
}

func TestControllerNamesMissingReferences(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"},
		Spec: slinkyv1beta1.ControllerSpec{
			AccountingRef:  &slinkyv1beta1.ObjectReference{Name: "nowhere"},
			ConfigFileRefs: []slinkyv1beta1.ObjectReference{{Name: "lost"}},
		}}
	world.create(t, controller)
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionDegraded,
			metav1.ConditionTrue, slinkyv1beta1.ReasonReferenceNotFound)
	})
	for _, condition := range controller.Status.Conditions {
		if condition.Type == slinkyv1beta1.ConditionReady &&
			(!strings.Contains(condition.Message, "Accounting nowhere") ||
				!strings.Contains(condition.Message, "ConfigMap lost")) {
			t.Errorf("the message is %q", condition.Message)
		}
	}
	// The Accounting will provide the keys; with generated ones the cluster could not talk to it.
	if err := world.Get(t.Context(), client.ObjectKey{Name: "slurm-auth-slurm"},
		&corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("keys were generated: %v", err)
	}
}

// readyController creates a Controller with a RestApi, and simulates the kubelet, validation runs, the agent and Slurm
// until the Controller is ready.
func (w *world) readyController(t *testing.T) *slinkyv1beta1.Controller {
	t.Helper()
	return w.readyControllerWith(t, slinkyv1beta1.ControllerSpec{}, "slurm-auth-jwths256")
}

// readyControllerWith does the same with a given spec and the name of the Secret with its JWT key.
func (w *world) readyControllerWith(t *testing.T, spec slinkyv1beta1.ControllerSpec,
	keyName string) *slinkyv1beta1.Controller {
	t.Helper()
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}, Spec: spec}
	w.create(t, controller,
		&slinkyv1beta1.RestApi{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}, Spec: slinkyv1beta1.RestApiSpec{
			ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"},
		}})
	w.slurm.AddNodes("node-0")
	key := &corev1.Secret{}
	w.eventually(t, keyName, key, func() error { return nil })
	w.slurm.SetKey(slices.Concat(slices.Collect(maps.Values(key.Data))...)) // it has one value
	stop := w.acceptEverything(t)
	defer stop()
	set := &appsv1.StatefulSet{}
	w.eventually(t, "slurm-controller", set, func() error { return nil })
	w.createPod(t, "slurm-controller-0", slurmctldAddress, templateOf(set))
	w.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionTrue,
			slinkyv1beta1.ReasonAsExpected)
	})
	return controller
}

// acceptEverything simulates validation runs that accept and an agent that applies, until it is stopped. It passes each
// configuration on before the agent applies it.
func (w *world) acceptEverything(t *testing.T, seen ...func(live *corev1.ConfigMap)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	loop, end := w.loop()
	go func() {
		defer close(done)
		defer end()
		for ctx.Err() == nil {
			loop.beat()
			if pod := w.pendingValidation(ctx); pod != nil {
				_ = w.setReport(ctx, pod, validation.Report{Outcome: validation.Accepted, SlurmVersion: "26.05.5"})
			}
			live := &corev1.ConfigMap{}
			if err := w.Get(ctx, client.ObjectKey{Name: "slurm-config"}, live); err == nil {
				for _, each := range seen {
					each(live)
				}
				w.setAgent(agentWith(live))
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-done }
}

// finishValidation waits for a validation run and finishes it with a report.
func (w *world) finishValidation(t *testing.T, report validation.Report) {
	t.Helper()
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}}
	w.await(t, "a validation run", controller, func(ctx context.Context) error {
		pod := w.pendingValidation(ctx)
		if pod == nil {
			return errors.New("there is none")
		}
		return w.setReport(ctx, pod, report)
	})
}

func (w *world) pendingValidation(ctx context.Context) *corev1.Pod {
	pods := &corev1.PodList{}
	if err := w.List(ctx, pods, client.MatchingLabels{"app.kubernetes.io/name": "slurmctld-trial"}); err != nil {
		return nil
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil {
			return &pod
		}
	}
	return nil
}

func (w *world) setReport(ctx context.Context, pod *corev1.Pod, report validation.Report) error {
	message, err := json.Marshal(report)
	if err != nil {
		return err
	}
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "trial", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Message: string(message), FinishedAt: metav1.Now()},
	}}}
	return w.Status().Update(ctx, pod)
}

// templateOf returns the template of pods that a StatefulSet controls.
func templateOf(set *appsv1.StatefulSet) corev1.PodTemplateSpec {
	template := *set.Spec.Template.DeepCopy()
	template.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")),
	}
	return template
}

// createPod simulates the StatefulSet controller and the kubelet.
func (w *world) createPod(t *testing.T, name, address string, template corev1.PodTemplateSpec) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: template.Labels, Annotations: template.Annotations,
		OwnerReferences: template.OwnerReferences,
	}, Spec: template.Spec}
	pod.Spec.ServiceAccountName = ""
	w.create(t, pod)
	pod.Status.Phase = corev1.PodRunning
	if address != "" {
		pod.Status.PodIP, pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := w.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// warns waits for a warning event.
func (w *world) warns(t *testing.T, reason, text string) {
	t.Helper()
	w.await(t, fmt.Sprintf("a warning %s with %q", reason, text), nil, func(ctx context.Context) error {
		events := &eventsv1.EventList{}
		if err := w.List(ctx, events); err != nil {
			return err
		}
		for i := range events.Items {
			event := &events.Items[i]
			if event.Type == corev1.EventTypeWarning && event.Reason == reason && strings.Contains(event.Note, text) {
				return nil
			}
		}
		return fmt.Errorf("it is not among %d events", len(events.Items))
	})
}

func agentWith(live *corev1.ConfigMap) agent.Report {
	return agent.Report{
		FilesHash: live.Annotations[hashAnnotation], RunningHash: live.Annotations[hashAnnotation], CheckedAt: time.Now(),
	}
}

func hasFile(live *corev1.ConfigMap, name, content string) error {
	if live.Data[name] != content {
		return fmt.Errorf("%s is %q", name, live.Data[name])
	}
	return nil
}

// Daemons with different keys refuse each other: a deleted key is reported, and not generated again.
func TestLostKeyIsNotRegenerated(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	key := &corev1.Secret{}
	world.eventually(t, "slurm-auth-slurm", key, func() error { return nil })
	if err := world.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionDegraded,
			metav1.ConditionTrue, slinkyv1beta1.ReasonReferenceNotFound)
	})
	world.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: key.Name}, Data: key.Data})
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionTrue,
			slinkyv1beta1.ReasonAsExpected)
	})
}

// A slurmctld that starts without its saved state kills every running job. So a deleted PVC is reported and not
// re-created, and as long as slurmctld's pod keeps the PVC from being removed, the pod is not replaced.
func TestLostStateClaimIsNotRecreated(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	conditionIs := func(kind string, is metav1.ConditionStatus, reason string) {
		t.Helper()
		world.eventually(t, "slurm", controller,
			func() error { return condition(controller, controller.Status.Conditions, kind, is, reason) })
	}
	claim, pod := &corev1.PersistentVolumeClaim{}, &corev1.Pod{}
	world.get(t, "slurm-controller-state", claim)
	if err := world.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	conditionIs(slinkyv1beta1.ConditionDegraded, metav1.ConditionTrue, slinkyv1beta1.ReasonStateBeingDeleted)
	// A changed template would be a reason to replace the pod.
	set := &appsv1.StatefulSet{}
	world.get(t, "slurm-controller", set)
	world.patch(t, set,
		`{"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}}`)
	world.observed(t, set, "next")
	world.waitUntilIdle(t)
	if world.get(t, "slurm-controller-0", pod); pod.DeletionTimestamp != nil {
		t.Error("slurmctld's pod was deleted, and the state with it")
	}
	// The pod is deleted for another reason.
	if err := world.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	world.patch(t, claim, `{"metadata": {"finalizers": null}}`) // as Kubernetes does when no pod uses the PVC
	conditionIs(slinkyv1beta1.ConditionDegraded, metav1.ConditionTrue, slinkyv1beta1.ReasonStateLost)
	world.waitUntilIdle(t)
	if err := world.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); !apierrors.IsNotFound(err) {
		t.Errorf("the PVC was re-created: %v", err)
	}
	// An administrator restores it.
	world.create(t, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "slurm-controller-state"}, Spec: claim.Spec,
	})
	set.Spec.Template.Labels[appsv1.ControllerRevisionHashLabelKey] = "next"
	world.createPod(t, "slurm-controller-0", slurmctldAddress, templateOf(set))
	conditionIs(slinkyv1beta1.ConditionReady, metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected)
}

// The connection to Slurm survives deletion of the Accounting: slurmctld keeps running with its keys.
func TestSessionSurvivesAccountingDeletion(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	books := newAccounting()
	books.Name = "books"
	world.create(t, books)
	controller := world.readyControllerWith(t,
		slinkyv1beta1.ControllerSpec{AccountingRef: &slinkyv1beta1.ObjectReference{Name: "books"}}, "books-auth-jwths256")
	if err := world.Delete(t.Context(), books); err != nil {
		t.Fatal(err)
	}
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionDegraded,
			metav1.ConditionTrue, slinkyv1beta1.ReasonReferenceNotFound)
	})
	world.slurm.AddNodes("node-1") // only a working session sees it
	world.eventually(t, "slurm", controller, func() error {
		if controller.Status.Nodes.Total != 2 {
			return fmt.Errorf("%d nodes", controller.Status.Nodes.Total)
		}
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable,
			metav1.ConditionTrue, slinkyv1beta1.ReasonConnected)
	})
}

// I4: no reconcile waits for Slurm, whatever slurmrestd does. Requests to Slurm never time out here: a reconcile that
// waited for one would be canceled each time, and the test would time out.
func TestHangingSlurmDoesNotBlockReconciles(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	world.slurmTimeout.Store(int64(24 * time.Hour))
	controller := world.readyController(t)
	world.slurm.Inject(slurmtest.Fault{Respond: slurmtest.Hang})
	world.patch(t, controller, `{"spec":{"extraConf":"SchedulerType=sched/builtin"}}`)
	world.finishValidation(t, validation.Report{Outcome: validation.Accepted, SlurmVersion: "26.05.5"})
	live := &corev1.ConfigMap{}
	world.eventually(t, "slurm-config", live, func() error {
		if !strings.Contains(live.Data["slurm.conf"], "sched/builtin") {
			return errors.New("the configuration was not promoted")
		}
		return nil
	})
	world.create(t, newToken("frank"), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"jwt_hs256.key": make([]byte, 32)},
	})
	world.eventually(t, "frank-jwt-frank", &corev1.Secret{}, func() error { return nil })
}
