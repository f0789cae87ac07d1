//go:build integration

package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
)

// withPartition returns a NodeSet of Controller slurm with a partition.
func withPartition(name, config string) *slinkyv1beta1.NodeSet {
	return &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: slinkyv1beta1.NodeSetSpec{
		ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}, Replicas: new(int32(0)),
		Partition: slinkyv1beta1.NodeSetPartition{Enabled: true, Config: config},
	}}
}

// inForce waits until the configuration in force has all lines and none of the absent texts.
func (w *world) inForce(t *testing.T, lines []string, absent ...string) {
	t.Helper()
	live := &corev1.ConfigMap{}
	w.eventually(t, "slurm-config", live, func() error {
		for _, line := range lines {
			if !strings.Contains(live.Data["slurm.conf"], line+"\n") {
				return fmt.Errorf("no line %q in\n%s", line, live.Data["slurm.conf"])
			}
		}
		for _, text := range absent {
			if strings.Contains(live.Data["slurm.conf"], text) {
				return fmt.Errorf("%q in\n%s", text, live.Data["slurm.conf"])
			}
		}
		return nil
	})
}

// waitUntilLeftOut waits until the Controller's condition NodeSetLeftOut has all texts in its message.
func (w *world) waitUntilLeftOut(t *testing.T, texts ...string) {
	t.Helper()
	controller := &slinkyv1beta1.Controller{}
	w.eventually(t, "slurm", controller, func() error {
		if err := condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionConfigurationApplied,
			metav1.ConditionFalse, slinkyv1beta1.ReasonNodeSetLeftOut); err != nil {
			return err
		}
		for _, found := range controller.Status.Conditions {
			for _, text := range texts {
				if found.Type == slinkyv1beta1.ConditionConfigurationApplied && !strings.Contains(found.Message, text) {
					return fmt.Errorf("the message is %q", found.Message)
				}
			}
		}
		return nil
	})
}

// I21: a NodeSet with an invalid partition blocks nothing but itself.
func TestInvalidPartitionBlocksOnlyItsNodeSet(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	world.readyController(t)
	stop := world.acceptEverything(t)
	defer stop()
	gpu := withPartition("gpu", "MaxTime=60")
	world.create(t, gpu)
	world.inForce(t, []string{"PartitionName=gpu Nodes=gpu MaxTime=60"})

	// A typo in a partition that is in force: the partition and its jobs stay.
	world.patch(t, gpu, `{"spec":{"partition":{"config":"MaxTime"}}}`)
	world.waitUntilLeftOut(t, "NodeSet gpu", "spec.partition.config", `"MaxTime"`, "write Key=Value")
	world.warns(t, slinkyv1beta1.ReasonNodeSetLeftOut, "NodeSet gpu")
	world.create(t, withPartition("cpu", ""))
	world.inForce(t, []string{"PartitionName=gpu Nodes=gpu MaxTime=60", "PartitionName=cpu Nodes=cpu"})
	// A new NodeSet with a typo gets no partition.
	world.create(t, withPartition("fpga", "Default=YES oops"))
	world.create(t, withPartition("late", ""))
	world.inForce(t,
		[]string{"PartitionName=gpu Nodes=gpu MaxTime=60", "PartitionName=cpu Nodes=cpu",
			"PartitionName=late Nodes=late"}, "PartitionName=fpga")
	world.waitUntilLeftOut(t, "NodeSet gpu", "NodeSet fpga")

	world.patch(t, gpu, `{"spec":{"partition":{"config":"MaxTime=90"}}}`)
	world.inForce(t, []string{"PartitionName=gpu Nodes=gpu MaxTime=90"})
	fpga := withPartition("fpga", "")
	world.patch(t, fpga, `{"spec":{"partition":{"config":"Default=YES"}}}`)
	world.inForce(t, []string{"PartitionName=fpga Nodes=fpga Default=YES"})
	controller := &slinkyv1beta1.Controller{}
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionTrue,
			slinkyv1beta1.ReasonAsExpected)
	})
}

// The same for a partition that only slurmctld refuses.
func TestRefusedPartitionBlocksOnlyItsNodeSet(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	world.create(t, withPartition("gpu", "MaxTime=60"))
	world.finishValidation(t, validation.Report{Outcome: validation.Accepted, SlurmVersion: "26.05.5"})
	world.inForce(t, []string{"PartitionName=gpu Nodes=gpu MaxTime=60"})
	world.applyConfig(t)

	gpu := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	world.patch(t, gpu, `{"spec":{"partition":{"config":"MaxTime=soon"}}}`)
	refusal := validation.Report{
		Outcome: validation.Accepted, SlurmVersion: "26.05.5",
		LeftOut: []validation.LeftOut{{NodeSet: "gpu", Detail: "slurm.conf line 30: Bad value soon for MaxTime"}},
	}
	world.finishValidation(t, refusal)
	world.waitUntilLeftOut(t, "NodeSet gpu", "spec.partition.config", "Bad value soon for MaxTime")
	world.warns(t, slinkyv1beta1.ReasonNodeSetLeftOut, "Bad value soon")
	world.waitUntilIdle(t)
	world.inForce(t, []string{"PartitionName=gpu Nodes=gpu MaxTime=60"}, "soon")

	// Other changes still reach slurmctld.
	world.patch(t, controller, `{"spec":{"extraConf":"SchedulerType=sched/builtin"}}`)
	world.finishValidation(t, refusal)
	world.inForce(t, []string{"SchedulerType=sched/builtin", "PartitionName=gpu Nodes=gpu MaxTime=60"}, "soon")
	world.applyConfig(t)
	world.waitUntilLeftOut(t, "NodeSet gpu", "Bad value soon for MaxTime")

	// A typo in the Controller's own extraConf blocks all changes.
	world.patch(t, controller, `{"spec":{"extraConf":"SelectType=select/nope"}}`)
	world.finishValidation(t, validation.Report{
		Outcome: validation.Refused, SlurmVersion: "26.05.5", Detail: "cannot find select plugin",
	})
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionConfigurationApplied,
			metav1.ConditionFalse, slinkyv1beta1.ReasonRefused)
	})
	world.inForce(t, []string{"SchedulerType=sched/builtin", "PartitionName=gpu Nodes=gpu MaxTime=60"})

	world.patch(t, controller, `{"spec":{"extraConf":""}}`)
	world.patch(t, gpu, `{"spec":{"partition":{"config":"MaxTime=90"}}}`)
	stop := world.acceptEverything(t)
	defer stop()
	world.inForce(t, []string{"PartitionName=gpu Nodes=gpu MaxTime=90"})
	world.eventually(t, "slurm", controller, func() error {
		live := &corev1.ConfigMap{}
		world.get(t, "slurm-config", live)
		if len(live.Annotations) == 0 || strings.Contains(fmt.Sprint(live.Annotations), "soon") {
			return errors.New("the promoted configuration still has the annotation about the left-out partition")
		}
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionTrue,
			slinkyv1beta1.ReasonAsExpected)
	})
}

// applyConfig makes the agent report that slurmctld runs with the configuration in force.
func (w *world) applyConfig(t *testing.T) {
	t.Helper()
	live := &corev1.ConfigMap{}
	w.get(t, "slurm-config", live)
	w.setAgent(agentWith(live))
}
