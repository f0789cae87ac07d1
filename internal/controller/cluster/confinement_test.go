package cluster

import (
	"cmp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestConfinementChangesWhenPodsArePrepared(t *testing.T) {
	const cgroups, none = slinkyv1beta1.JobConfinementCgroups, slinkyv1beta1.JobConfinementNone
	inForce := func(tracking string) func(*scope) {
		return func(s *scope) {
			files := map[string]string{
				slurmconf.FileName: "ProctrackType=" + tracking + "\n", clusterconf.CgroupFile: slurmconf.IncludePodCgroup,
			}
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
	fileless := func(s *scope) { s.unprepared, s.fileless = 2, 2 }
	fixed := func(content string) func(*scope) {
		return func(s *scope) { s.promoted.files[clusterconf.CgroupFile] = content }
	}
	disabled, enabled := fixed(slurmconf.CgroupsDisabled), fixed(slurmconf.CgroupsEnabled)
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
		confines bool
		pods     slinkyv1beta1.JobConfinement
		waits    bool
		// conf is the cgroup.conf for all slurmds, if pods do not have their own.
		conf string
	}{
		"jobs are confined by default": {confines: true, pods: cgroups},
		"an upgrade changes nothing":   {changes: changes{unconfined, since(0)}, pods: none},
		"a confined cluster stays so":  {changes: changes{confined, since(0)}, confines: true, pods: cgroups},
		"a restored cluster is not confined": {
			changes: changes{slurmds}, pods: none,
		},
		"a confined cluster whose configuration is lost stays so": {
			changes: changes{slurmds, record(cgroups)}, confines: true, pods: cgroups,
		},
		"an unconfined cluster whose configuration is lost stays so": {changes: changes{record(none)}, pods: none},
		"an administrator decides":                                   {changes: changes{own}, pods: none},
		"jobs may be unconfined":                                     {changes: changes{choose(none)}, pods: none},
		"pods are prepared first": {
			changes: changes{unconfined, since(settleTime), choose(cgroups), unprepared}, pods: cgroups, waits: true,
		},
		"pods are prepared, whatever changes meanwhile": {
			changes: changes{unconfined, since(0), choose(cgroups), unprepared, record(cgroups)}, pods: cgroups, waits: true,
		},
		"jobs are not confined before the status says that pods are prepared": {
			changes: changes{unconfined, since(settleTime), choose(cgroups)}, pods: cgroups, waits: true,
		},
		"jobs are confined when all pods are prepared": {
			changes: changes{unconfined, since(0), choose(cgroups), record(cgroups)}, confines: true, pods: cgroups,
		},
		"the settings are given up first": {
			changes: changes{confined, since(0), choose(none), record(cgroups)}, pods: cgroups, waits: true,
		},
		"pods stay prepared until slurmctld runs without the settings": {
			changes: changes{unconfined, choose(none), record(cgroups)}, pods: cgroups, waits: true,
		},
		"pods stay prepared until slurmds run without the settings": {
			changes: changes{unconfined, since(settleTime - 1), choose(none), record(cgroups)}, pods: cgroups, waits: true,
		},
		"pods follow when slurmds run without the settings": {
			changes: changes{unconfined, since(settleTime), choose(none), record(cgroups)}, pods: none,
		},
		"and still do while the next configuration is validated": {
			changes: changes{unconfined, since(settleTime), choose(none), record(cgroups), validating}, pods: none,
		},
		"a change of something else does not prepare pods": {
			changes: changes{unconfined, since(0), choose(none), record(none)}, pods: none,
		},
		"pods without a cgroup.conf of their own keep the one that disables cgroups": {
			changes: changes{unconfined, since(settleTime), disabled, fileless}, pods: none, conf: slurmconf.CgroupsDisabled,
		},
		"and are not prepared before they are replaced": {
			changes: changes{unconfined, since(settleTime), disabled, fileless, choose(cgroups)},
			pods:    none, waits: true, conf: slurmconf.CgroupsDisabled,
		},
		"nor before slurmctld leaves the choice to pods": {
			changes: changes{unconfined, since(settleTime), disabled, unprepared, choose(cgroups)}, pods: none, waits: true,
		},
		"nor before slurmds have adopted that": {
			changes: changes{unconfined, since(settleTime - 1), unprepared, choose(cgroups)}, pods: none, waits: true,
		},
		"pods without a cgroup.conf of their own keep the one that enables cgroups": {
			changes:  changes{confined, since(settleTime), enabled, func(s *scope) { s.fileless = 2 }, record(cgroups)},
			confines: true, pods: cgroups, conf: slurmconf.CgroupsEnabled,
		},
		"and stay prepared, although jobs are no longer confined": {
			changes: changes{unconfined, since(settleTime), enabled, fileless, record(cgroups), choose(none)},
			pods:    cgroups, waits: true, conf: slurmconf.CgroupsEnabled,
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
			if got := candidate.files[clusterconf.CgroupFile]; got != cmp.Or(test.conf, slurmconf.IncludePodCgroup) {
				t.Errorf("cgroup.conf is %q", got)
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
