package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestConfinementChangesWhenPodsArePrepared(t *testing.T) {
	const cgroups, none = slinkyv1beta1.JobConfinementCgroups, slinkyv1beta1.JobConfinementNone
	inForce := func(tracking string) func(*scope) {
		return func(s *scope) {
			files := map[string]string{slurmconf.FileName: "ProctrackType=" + tracking + "\n"}
			s.promoted = &promoted{hash: "live", files: files}
			s.pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "slurm-controller-0"}}}
		}
	}
	unconfined, confined := inForce("proctrack/linuxproc"), inForce("proctrack/cgroup")
	since := func(age time.Duration) func(*scope) {
		return func(s *scope) {
			s.agents["slurm-controller-0"] = agent.Report{
				FilesHash: "live", RunningHash: "live", RunningSince: s.now.Add(-age), CheckedAt: s.now,
			}
		}
	}
	choose := func(mode slinkyv1beta1.JobConfinement) func(*scope) {
		return func(s *scope) { s.controller.Spec.JobConfinement = mode }
	}
	unprepared := func(s *scope) { s.unprepared = 2 }
	enabled := func(s *scope) {
		s.promoted.files[clusterconf.CgroupFile] = clusterconf.NewFiles(false, true)[clusterconf.CgroupFile]
	}
	record := func(mode slinkyv1beta1.JobConfinement) func(*scope) {
		return func(s *scope) { s.controller.Status.JobConfinement = mode }
	}
	slurmds := func(s *scope) {
		s.nodeSets = []slinkyv1beta1.NodeSet{{}}
		s.nodeSets[0].Status.ReadyReplicas = 1
	}
	validating := func(s *scope) {
		s.controller.Status.Conditions = []metav1.Condition{{
			Type: slinkyv1beta1.ConditionConfigurationApplied, Status: metav1.ConditionFalse,
			LastTransitionTime: metav1.NewTime(s.now),
		}}
	}
	own := func(s *scope) { s.controller.Spec.ExtraConf = "ProctrackType=proctrack/pgid" }
	type changes = []func(*scope)
	for name, test := range map[string]struct {
		changes
		confines, enables bool
		pods              slinkyv1beta1.JobConfinement
		waits             bool
	}{
		"jobs are confined by default": {confines: true, enables: true, pods: cgroups},
		"an upgrade changes nothing":   {changes: changes{unconfined, since(0)}, pods: none},
		"a confined cluster stays so": {
			changes: changes{confined, since(0), enabled}, confines: true, enables: true, pods: cgroups,
		},
		"a restored cluster is not confined": {changes: changes{slurmds}, pods: none},
		"a confined cluster whose configuration is lost stays so": {
			changes: changes{slurmds, record(cgroups)}, confines: true, enables: true, pods: cgroups,
		},
		"an unconfined cluster whose configuration is lost stays so": {changes: changes{record(none)}, pods: none},
		"an administrator decides":                                   {changes: changes{own}, pods: none},
		"jobs may be unconfined":                                     {changes: changes{choose(none)}, pods: none},
		"pods are prepared first": {
			changes: changes{unconfined, since(0), choose(cgroups), unprepared}, pods: cgroups, waits: true,
		},
		"cgroups are enabled when all pods are prepared": {
			changes: changes{unconfined, since(settleTime), choose(cgroups)}, enables: true, pods: cgroups, waits: true,
		},
		"jobs are not confined until slurmctld runs with cgroups": {
			changes: changes{unconfined, choose(cgroups), enabled}, enables: true, pods: cgroups, waits: true,
		},
		"jobs are not confined until slurmds run with cgroups": {
			changes: changes{unconfined, since(settleTime - 1), choose(cgroups), enabled},
			enables: true, pods: cgroups, waits: true,
		},
		"jobs are confined when slurmds run with cgroups": {
			changes:  changes{unconfined, since(settleTime), choose(cgroups), enabled},
			confines: true, enables: true, pods: cgroups,
		},
		"the settings are given up first": {
			changes: changes{confined, since(0), choose(none), enabled}, enables: true, pods: cgroups, waits: true,
		},
		"cgroups stay enabled until slurmctld runs without them": {
			changes: changes{unconfined, choose(none), enabled}, enables: true, pods: cgroups, waits: true,
		},
		"cgroups stay enabled until slurmds run without them": {
			changes: changes{unconfined, since(settleTime - 1), choose(none), enabled},
			enables: true, pods: cgroups, waits: true,
		},
		"pods follow when slurmds run without them": {
			changes: changes{unconfined, since(settleTime), choose(none), enabled}, pods: none,
		},
		"and still do while the next configuration is validated": {
			changes: changes{unconfined, since(settleTime), choose(none), enabled, validating}, pods: none,
		},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(test.changes...)
			candidate, problem := build(scope)
			if problem != nil {
				t.Fatal(problem.Message)
			}
			if got := clusterconf.IsConfined(candidate.document); got != test.confines {
				t.Errorf("slurm.conf confines jobs: %t", got)
			}
			if got := strings.Contains(candidate.files[clusterconf.CgroupFile], "ConstrainRAMSpace=yes"); got != test.enables {
				t.Errorf("cgroup.conf enables cgroups: %t", got)
			}
			if got := scope.podConfinement(); got != test.pods {
				t.Errorf("pods are prepared for %s, want %s", got, test.pods)
			}
			if got := scope.isSwitching(); got != test.waits {
				t.Errorf("the Controller is polled: %t", got)
			}
			message := scope.confinementMessage()
			if said := message != ""; said != (test.waits && scope.confinement() == cgroups) {
				t.Errorf("the message is %q", message)
			}
		})
	}
}

// slurmd exits if cgroups are enabled again in a pod that has used them and then run without them. So the configuration
// records when they were disabled, for as long as they are, and pods from before that are not prepared.
func TestConfigurationRecordsWhenCgroupsWereDisabled(t *testing.T) {
	enabled := candidate{files: clusterconf.NewFiles(false, true)}
	disabled := candidate{files: clusterconf.NewFiles(false, false)}
	earlier := start.Add(-time.Hour)
	inForce := func(files candidate, at time.Time) *promoted {
		return &promoted{files: files.files, cgroupsDisabled: at}
	}
	for name, test := range map[string]struct {
		inForce *promoted
		next    candidate
		want    time.Time
	}{
		"not in a new cluster":         {nil, disabled, time.Time{}},
		"not without a change":         {inForce(enabled, time.Time{}), enabled, time.Time{}},
		"when they are disabled":       {inForce(enabled, time.Time{}), disabled, start},
		"as long as they are":          {inForce(disabled, earlier), disabled, earlier},
		"no longer than that":          {inForce(disabled, earlier), enabled, time.Time{}},
		"not if they never were there": {inForce(disabled, time.Time{}), disabled, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(func(s *scope) { s.promoted = test.inForce })
			configMap, err := promotedConfigMap(scope, test.next)
			if err != nil {
				t.Fatal(err)
			}
			if got := naming.CgroupsDisabled(configMap.Annotations); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
