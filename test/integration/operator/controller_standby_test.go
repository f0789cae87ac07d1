//go:build integration

package operator_test

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A standby that cannot start, such as one with an image that does not exist, never answers. It must not block the
// rollout of a corrected template, and the active slurmctld is replaced only when the standby is up.
func TestStandbyThatCannotStartIsReplaced(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	stop := world.acceptEverything(t)
	defer stop()
	world.patch(t, controller, `{"spec":{"ha":{"enabled":true,"backups":1}}}`)
	world.inForce(t, []string{"SlurmctldHost=slurm-controller-1"})
	set, active, standby := &appsv1.StatefulSet{}, &corev1.Pod{}, &corev1.Pod{}
	world.eventually(t, "slurm-controller", set, func() error {
		if *set.Spec.Replicas != 2 {
			return errors.New("no backup")
		}
		return nil
	})
	world.get(t, "slurm-controller-0", active)
	world.createPod(t, "slurm-controller-1", "", templateOf(set))
	world.get(t, "slurm-controller-1", standby)
	standby.Status.Conditions = nil
	standby.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "slurmctld", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"},
	}}}
	if err := world.Status().Update(t.Context(), standby); err != nil {
		t.Fatal(err)
	}

	world.patch(t, set,
		`{"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}}`)
	world.observed(t, set, "next")
	world.waitUntilDeleted(t, standby)
	world.get(t, "slurm-controller", set)
	set.Spec.Template.Labels[appsv1.ControllerRevisionHashLabelKey] = "next"
	world.createPod(t, "slurm-controller-1", "", templateOf(set)) // not up yet
	world.waitUntilIdle(t)
	if world.get(t, "slurm-controller-0", active); active.DeletionTimestamp != nil {
		t.Fatal("the active slurmctld was replaced while the standby was not up")
	}

	const standbyAddress = "10.0.0.2"
	world.get(t, "slurm-controller-1", standby)
	standby.Status.Conditions, standby.Status.PodIP, standby.Status.PodIPs = nil, standbyAddress, []corev1.PodIP{
		{IP: standbyAddress},
	}
	live := &corev1.ConfigMap{}
	world.get(t, "slurm-config", live)
	world.setAgentAt(standbyAddress, agentWith(live))
	if err := world.Status().Update(t.Context(), standby); err != nil {
		t.Fatal(err)
	}
	world.waitUntilDeleted(t, active)
}

// waitUntilDeleted waits until a pod is deleted.
func (w *world) waitUntilDeleted(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	w.gone(t, pod.Name, pod)
	if err := client.IgnoreNotFound(w.Delete(t.Context(), pod, client.GracePeriodSeconds(0))); err != nil {
		t.Fatal(err)
	}
}
