//go:build integration

package operator_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

// A setting whose change costs running jobs changes after the last job, while the partitions are closed.
func TestCostlySettingWaitsForJobs(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyControllerWith(t, slinkyv1beta1.ControllerSpec{ExtraConf: "PartitionName=all Nodes=ALL"},
		"slurm-auth-jwths256")
	job, err := world.slurm.Submitter("root").Submit(t.Context(), slurmtest.JobRequest{
		Name: "long", Script: "#!/bin/sh\n" + forever, Nodes: 1, TimeLimit: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	world.eventually(t, "slurm", controller, func() error {
		if jobs := controller.Status.Jobs; jobs == nil || jobs.Running != 1 {
			return fmt.Errorf("the operator does not know the job: %+v", jobs)
		}
		return nil
	})
	live := &corev1.ConfigMap{}
	var closed atomic.Bool
	stop := world.acceptEverything(t, func(live *corev1.ConfigMap) {
		if strings.Contains(live.Data["slurm.conf"], "State=DOWN") {
			closed.Store(true)
		}
	})
	defer stop()
	world.patch(t, controller,
		`{"spec": {"extraConf": "PartitionName=all Nodes=ALL\nSlurmdSpoolDir=/var/spool/slurmd/other\nMaxArraySize=2000"}}`)
	world.eventually(t, "slurm", controller, func() error {
		message := meta.FindStatusCondition(controller.Status.Conditions,
			slinkyv1beta1.ConditionConfigurationApplied).Message
		if !strings.Contains(message, "SlurmdSpoolDir stays as it was until no job runs") ||
			!strings.Contains(message, "1 jobs on 1 nodes, the last until") {
			return fmt.Errorf("the message is %q", message)
		}
		return nil
	})
	if world.get(t, "slurm-config", live); strings.Contains(live.Data["slurm.conf"], "other") ||
		!strings.Contains(live.Data["slurm.conf"], "MaxArraySize=2000") {
		t.Errorf("while the job runs, slurm.conf is\n%s", live.Data["slurm.conf"])
	}
	if closed.Load() {
		t.Error("the partitions were closed while the job ran")
	}
	if err := world.slurm.Submitter("root").Cancel(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	world.eventually(t, "slurm-config", live, func() error {
		if text := live.Data["slurm.conf"]; !strings.Contains(text, "SlurmdSpoolDir=/var/spool/slurmd/other") ||
			strings.Contains(text, "State=DOWN") {
			return fmt.Errorf("slurm.conf is\n%s", text)
		}
		return nil
	})
	if !closed.Load() {
		t.Error("the partitions were not closed before the change")
	}
}

// Lines of an administrator's nodes change when these nodes are drained and empty, also while jobs run on others.
func TestNodeLinesWaitForDrain(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	world.slurm.AddNodes("bm1", "bm2")
	world.slurm.SetFlag("bm2", "DRAIN", true)
	controller := world.readyControllerWith(t, slinkyv1beta1.ControllerSpec{
		ExtraConf: "NodeName=bm[1-2] CPUs=4\nPartitionName=all Nodes=ALL",
	}, "slurm-auth-jwths256")
	if _, err := world.slurm.Submitter("root").Submit(t.Context(), slurmtest.JobRequest{
		Name: "long", Script: "#!/bin/sh\n" + forever, Nodes: 1, TimeLimit: time.Hour,
	}); err != nil {
		t.Fatal(err)
	}
	world.slurm.SetFlag("bm2", "DRAIN", false)
	stop := world.acceptEverything(t)
	defer stop()
	world.patch(t, controller, `{"spec": {"extraConf": "PartitionName=all Nodes=ALL\nMaxArraySize=2000"}}`)
	live := &corev1.ConfigMap{}
	lines := func(want string) {
		t.Helper()
		world.eventually(t, "slurm-config", live, func() error {
			text := live.Data["slurm.conf"]
			if !strings.Contains(text, "MaxArraySize=2000") || !strings.Contains(text, want+" CPUs=4\n") {
				return fmt.Errorf("slurm.conf is\n%s", text)
			}
			return nil
		})
	}
	lines("NodeName=bm[1-2]")
	world.eventually(t, "slurm", controller, func() error {
		message := meta.FindStatusCondition(controller.Status.Conditions,
			slinkyv1beta1.ConditionConfigurationApplied).Message
		if !strings.Contains(message, "the lines of Slurm nodes bm[1-2] change earlier if these nodes are drained") {
			return fmt.Errorf("the message is %q", message)
		}
		return nil
	})
	world.slurm.SetFlag("bm2", "DRAIN", true)
	lines("NodeName=bm1")
}
