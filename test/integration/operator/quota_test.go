//go:build integration

package operator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// limit creates a ResourceQuota and sets its status, because the quota controller does not run here.
func (w *world) limit(t *testing.T, name string, cpu, memory string) *corev1.ResourceQuota {
	t.Helper()
	hard := corev1.ResourceList{}
	for _, prefix := range []string{"requests.", "limits."} {
		hard[corev1.ResourceName(prefix+"cpu")] = resource.MustParse(cpu)
		hard[corev1.ResourceName(prefix+"memory")] = resource.MustParse(memory)
	}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}
	w.create(t, quota)
	w.setLimit(t, quota, hard)
	return quota
}

func (w *world) setLimit(t *testing.T, quota *corev1.ResourceQuota, hard corev1.ResourceList) {
	t.Helper()
	used := corev1.ResourceList{}
	for key := range hard {
		used[key] = resource.MustParse("0")
	}
	w.get(t, quota.Name, quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: used}
	if err := w.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
}

// A quota for CPU and memory refuses pods with a container without requests and limits. The user sets those of the
// daemons; all other containers, and the validation run, have their own.
func TestClusterFitsIntoQuota(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	world.limit(t, "compute", "20", "20Gi")
	sized := slinkyv1beta1.ContainerFragment{}
	sized.Raw = []byte(`{"resources":{"requests":{"cpu":"200m","memory":"256Mi"},"limits":{"cpu":"2","memory":"1Gi"}}}`)
	controller := world.readyControllerWith(t,
		slinkyv1beta1.ControllerSpec{Slurmctld: sized,
			ExtraConf: "SlurmctldLogFile=/var/log/slurm/slurmctld.log"}, "slurm-auth-jwths256")
	world.create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "database"}, Data: map[string][]byte{"password": []byte("secret")},
	})
	books := newAccounting()
	books.Spec.Slurmdbd = sized
	login := newLoginSet()
	login.Spec.Login = sized
	world.create(t, books, login)

	set := &appsv1.StatefulSet{}
	world.eventually(t, "slurm-controller", set, func() error { return unsized(set.Spec.Template.Spec) })
	if !slices.ContainsFunc(set.Spec.Template.Spec.Containers,
		func(container corev1.Container) bool { return container.Name == "logfile" }) {
		t.Error("there is no container for the log")
	}
	world.eventually(t, "slurm-accounting", set, func() error { return unsized(set.Spec.Template.Spec) })
	deployment := &appsv1.Deployment{}
	world.eventually(t, "login", deployment, func() error { return unsized(deployment.Spec.Template.Spec) })

	// A validation run is as large as slurmctld.
	world.patch(t, controller, `{"spec":{"extraConf":"SchedulerType=sched/builtin"}}`)
	var validation *corev1.Pod
	world.eventually(t, "slurm", controller, func() error {
		if validation = world.pendingValidation(t.Context()); validation == nil {
			return fmt.Errorf("there is no validation run: %v", controller.Status.Conditions)
		}
		return nil
	})
	if limit := validation.Spec.Containers[0].Resources.Limits.Memory().String(); limit != "1Gi" {
		t.Errorf("the validation run has %s of memory", limit)
	}
}

// slurmctld has no resources, so the quota refuses its pod. The StatefulSet does not report that; the Controller does.
func TestQuotaThatRefusesSlurmctldIsNamed(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	world.limit(t, "compute", "20", "20Gi")
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}}
	world.create(t, controller)
	stop := world.acceptEverything(t)
	defer stop()
	world.eventually(t, "slurm", controller, func() error {
		if err := condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionDegraded,
			metav1.ConditionTrue, slinkyv1beta1.ReasonQuotaExceeded); err != nil {
			return err
		}
		message := meta.FindStatusCondition(controller.Status.Conditions, slinkyv1beta1.ConditionReady).Message
		for _, text := range []string{"failed quota: compute", "limits.cpu for: slurmctld", "set the resources"} {
			if !strings.Contains(message, text) {
				return fmt.Errorf("the message is %q", message)
			}
		}
		return nil
	})
}

// slurmctld keeps running while a quota refuses the pod that would replace it, and is replaced if the quota has room
// for exactly one.
func TestQuotaWithRoomForOneSlurmctldAllowsItsReplacement(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	quota := world.limit(t, "compute", "20", "20Gi")
	sized := slinkyv1beta1.ContainerFragment{}
	sized.Raw = []byte(`{"resources":{"requests":{"cpu":"200m","memory":"256Mi"},"limits":{"cpu":"2","memory":"1Gi"}}}`)
	controller := world.readyControllerWith(t, slinkyv1beta1.ControllerSpec{Slurmctld: sized}, "slurm-auth-jwths256")
	pod, set := &corev1.Pod{}, &appsv1.StatefulSet{}
	world.get(t, "slurm-controller-0", pod)
	full := corev1.ResourceList{
		"limits.cpu": limits(pod, corev1.ResourceCPU), "limits.memory": limits(pod, corev1.ResourceMemory),
	}
	world.get(t, quota.Name, quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: full, Used: full}
	if err := world.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	retemplate := func(text, memory string) {
		t.Helper()
		world.patch(t, controller, "%s", text)
		world.eventually(t, "slurm-controller", set, func() error {
			if is := set.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().String(); is != memory {
				return fmt.Errorf("slurmctld has %s of memory", is)
			}
			return nil
		})
		world.observed(t, set, memory)
	}

	retemplate(`{"spec":{"slurmctld":{"resources":{"limits":{"memory":"3Gi"}}}}}`, "3Gi")
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionDegraded,
			metav1.ConditionTrue, slinkyv1beta1.ReasonQuotaExceeded)
	})
	if world.get(t, pod.Name, pod); pod.DeletionTimestamp != nil {
		t.Fatal("slurmctld was deleted, although its next pod is refused")
	}
	retemplate(`{"spec":{"slurmctld":{"resources":{"limits":{"memory":"512Mi"}}}}}`, "512Mi")
	world.waitUntilDeleted(t, pod)
}

// limits returns the sum of the limits of a pod's containers.
func limits(pod *corev1.Pod, name corev1.ResourceName) (sum resource.Quantity) {
	for _, container := range pod.Spec.Containers {
		sum.Add(container.Resources.Limits[name])
	}
	return sum
}

// unsized returns an error that names a container without requests or limits.
func unsized(spec corev1.PodSpec) error {
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, list := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
			if list.Cpu().IsZero() || list.Memory().IsZero() {
				return fmt.Errorf("container %s has %+v", container.Name, container.Resources)
			}
		}
	}
	return nil
}

// When a quota refuses a pod, the condition names the quota and what to do.
func TestQuotaThatRefusesAPodIsNamed(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	quota := world.limit(t, "tight", "10m", "10Mi")
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}}
	world.create(t, controller)
	world.eventually(t, "slurm", controller, func() error {
		if err := condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionConfigurationApplied,
			metav1.ConditionFalse, slinkyv1beta1.ReasonQuotaExceeded); err != nil {
			return err
		}
		message := meta.FindStatusCondition(controller.Status.Conditions, slinkyv1beta1.ConditionConfigurationApplied).
			Message
		for _, text := range []string{"tight", "requests.cpu", "raise"} {
			if !strings.Contains(message, text) {
				return fmt.Errorf("the message is %q", message)
			}
		}
		return nil
	})
	world.warns(t, slinkyv1beta1.ReasonQuotaExceeded, "tight")
	world.setLimit(t, quota, corev1.ResourceList{})
	// Any change triggers a retry immediately; without one the backoff does.
	world.patch(t, controller, `{"spec":{"extraConf":"SchedulerType=sched/builtin"}}`)
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionConfigurationApplied,
			metav1.ConditionFalse, slinkyv1beta1.ReasonTrying)
	})
}
