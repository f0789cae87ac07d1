//go:build integration

package operator_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// While the spec has a mistake, slurmctld starts again with the configuration in force.
func TestDeletedStatefulSetIsRecreatedDespiteAMistake(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	world.patch(t, controller, `{"spec":{"extraConf":"SlurmctldPort=1"}}`)
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionDegraded,
			metav1.ConditionTrue, slinkyv1beta1.ReasonInvalidSpec)
	})
	former, set := &appsv1.StatefulSet{}, &appsv1.StatefulSet{}
	world.get(t, "slurm-controller", former)
	if err := world.Delete(t.Context(), former); err != nil {
		t.Fatal(err)
	}
	world.eventually(t, "slurm-controller", set, func() error {
		if set.UID == former.UID {
			return fmt.Errorf("StatefulSet %s is the former one", set.UID)
		}
		return nil
	})
	world.patch(t, set, `{"spec":{"replicas":0}}`)
	world.eventually(t, "slurm-controller", set, func() error {
		if *set.Spec.Replicas != 1 {
			return fmt.Errorf("%d replicas", *set.Spec.Replicas)
		}
		return nil
	})
}

// An edit of the ConfigMap that slurmctld's pods mount is reverted, and nothing is reconfigured.
func TestEditOfTheConfigurationInForceIsReverted(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	world.readyController(t)
	live := &corev1.ConfigMap{}
	world.get(t, "slurm-config", live)
	before := live.DeepCopy()
	world.patch(t, live, `{"data":{"slurm.conf":%q,"mine.conf":"x"}}`, live.Data["slurm.conf"]+"SchedulerTpye=x\n")
	world.eventually(t, "slurm-config", live, func() error {
		if strings.Contains(live.Data["slurm.conf"], "SchedulerTpye") {
			return fmt.Errorf("slurm.conf is %s", live.Data["slurm.conf"])
		}
		return nil
	})
	world.waitUntilIdle(t)
	world.get(t, "slurm-config", live)
	if live.Data["slurm.conf"] != before.Data["slurm.conf"] || live.Data["mine.conf"] != "x" ||
		live.Annotations[hashAnnotation] != before.Annotations[hashAnnotation] {
		t.Errorf("the configuration is %v, %v", live.Annotations, live.Data)
	}
}
