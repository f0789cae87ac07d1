package cluster

import (
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
	inForce := func(tracking, cgroupConf string) func(*scope) {
		return func(s *scope) {
			files := map[string]string{
				slurmconf.FileName: "ProctrackType=" + tracking + "\n", clusterconf.CgroupFile: cgroupConf,
			}
			s.promoted = &promoted{hash: "live", files: files}
			s.pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "slurm-controller-0"}}}
		}
	}
	const choice = slurmconf.IncludePodCgroup
	unconfined := inForce("proctrack/linuxproc", slurmconf.CgroupsDisabled)
	choosing := inForce("proctrack/linuxproc", choice)
	confined := inForce("proctrack/cgroup", slurmconf.CgroupsEnabled)
	enabled := inForce("proctrack/linuxproc", slurmconf.CgroupsEnabled)
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
	pods := func(prepared, unprepared, fileless int) func(*scope) {
		return func(s *scope) { s.prepared, s.unprepared, s.fileless = prepared, unprepared, fileless }
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
		confines bool
		conf     string
		pods     slinkyv1beta1.JobConfinement
		waits    bool
	}{
		"jobs are confined by default": {confines: true, conf: slurmconf.CgroupsEnabled, pods: cgroups},
		"an upgrade changes nothing": {
			changes: changes{unconfined, since(0)}, conf: slurmconf.CgroupsDisabled, pods: none,
		},
		"a confined cluster stays so": {
			changes: changes{confined, since(0)}, confines: true, conf: slurmconf.CgroupsEnabled, pods: cgroups,
		},
		"a restored cluster is not confined": {
			changes: changes{slurmds, pods(0, 2, 0)}, conf: slurmconf.CgroupsDisabled, pods: none,
		},
		"a restored cluster whose pods are prepared is confined": {
			changes: changes{slurmds, pods(2, 0, 0)}, confines: true, conf: slurmconf.CgroupsEnabled, pods: cgroups,
		},
		"a restored cluster is not confined while a pod is not prepared": {
			changes: changes{slurmds, pods(1, 1, 0)}, conf: choice, pods: none,
		},
		"a confined cluster whose configuration is lost stays so": {
			changes:  changes{slurmds, record(cgroups), pods(2, 0, 0)},
			confines: true, conf: slurmconf.CgroupsEnabled, pods: cgroups,
		},
		"an unconfined cluster whose configuration is lost stays so": {
			changes: changes{slurmds, record(none), pods(0, 2, 0)}, conf: slurmconf.CgroupsDisabled, pods: none,
		},
		"an administrator decides": {changes: changes{own}, conf: slurmconf.CgroupsDisabled, pods: none},
		"jobs may be unconfined":   {changes: changes{choose(none)}, conf: slurmconf.CgroupsDisabled, pods: none},
		"pods get the choice first": {
			changes: changes{unconfined, since(settleTime), choose(cgroups), pods(0, 2, 0)},
			conf:    choice, pods: none, waits: true,
		},
		"pods are not prepared before slurmds have adopted that": {
			changes: changes{choosing, since(settleTime - 1), choose(cgroups), pods(0, 2, 0)},
			conf:    choice, pods: none, waits: true,
		},
		"then they are": {
			changes: changes{choosing, since(settleTime), choose(cgroups), pods(0, 2, 0)},
			conf:    choice, pods: cgroups, waits: true,
		},
		"and stay so, whatever changes meanwhile": {
			changes: changes{choosing, since(0), choose(cgroups), record(cgroups), pods(1, 1, 0)},
			conf:    choice, pods: cgroups, waits: true,
		},
		"jobs are not confined before the status says that pods are prepared": {
			changes: changes{choosing, since(settleTime), choose(cgroups)}, conf: choice, pods: cgroups, waits: true,
		},
		"jobs are confined when all pods are prepared": {
			changes:  changes{choosing, since(0), choose(cgroups), record(cgroups), pods(2, 0, 0)},
			confines: true, conf: slurmconf.CgroupsEnabled, pods: cgroups, waits: true,
		},
		"the settings are given up first, and pods have the choice": {
			changes: changes{confined, since(0), choose(none), record(cgroups), pods(2, 0, 0)},
			conf:    choice, pods: cgroups, waits: true,
		},
		"pods stay prepared until slurmctld runs without the settings": {
			changes: changes{choosing, choose(none), record(cgroups), pods(2, 0, 0)}, conf: choice, pods: cgroups, waits: true,
		},
		"pods stay prepared until slurmds run without the settings": {
			changes: changes{choosing, since(settleTime - 1), choose(none), record(cgroups), pods(2, 0, 0)},
			conf:    choice, pods: cgroups, waits: true,
		},
		"pods follow when slurmds run without the settings": {
			changes: changes{choosing, since(settleTime), choose(none), record(cgroups), pods(2, 0, 0)},
			conf:    choice, pods: none, waits: true,
		},
		"and still do while the next configuration is validated": {
			changes: changes{choosing, since(settleTime), choose(none), record(cgroups), validating, pods(2, 0, 0)},
			conf:    choice, pods: none, waits: true,
		},
		"they keep the choice until all have followed": {
			changes: changes{choosing, since(0), choose(none), record(none), pods(1, 1, 0)},
			conf:    choice, pods: none, waits: true,
		},
		"and no longer": {
			changes: changes{choosing, since(0), choose(none), record(none), pods(0, 2, 0)},
			conf:    slurmconf.CgroupsDisabled, pods: none, waits: true,
		},
		"a change of mind before pods are prepared": {
			changes: changes{choosing, since(0), record(none), choose(none), pods(0, 2, 0)},
			conf:    slurmconf.CgroupsDisabled, pods: none, waits: true,
		},
		"a change of mind while pods are prepared": {
			changes: changes{choosing, since(settleTime), record(cgroups), choose(none), pods(1, 1, 0)},
			conf:    choice, pods: none, waits: true,
		},
		"pods without a cgroup.conf of their own are replaced before they get the choice": {
			changes: changes{unconfined, since(settleTime), choose(cgroups), pods(0, 2, 1)},
			conf:    slurmconf.CgroupsDisabled, pods: none, waits: true,
		},
		"and stay prepared, although jobs are no longer confined": {
			changes: changes{confined, since(settleTime), record(cgroups), choose(none), pods(0, 2, 2)},
			conf:    slurmconf.CgroupsEnabled, pods: cgroups, waits: true,
		},
		"until all have one": {
			changes: changes{enabled, since(settleTime), record(cgroups), choose(none), pods(2, 0, 0)},
			conf:    choice, pods: cgroups, waits: true,
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
			if got := candidate.files[clusterconf.CgroupFile]; got != test.conf {
				t.Errorf("cgroup.conf is %q", got)
			}
			if got := scope.podConfinement(); got != test.pods {
				t.Errorf("pods are prepared for %s, want %s", got, test.pods)
			}
			if got := scope.isSwitching(); got != test.waits {
				t.Errorf("the Controller is polled: %t", got)
			}
			message := scope.confinementMessage()
			if said := message != ""; said != (scope.confinement() == cgroups && !test.confines) {
				t.Errorf("the message is %q", message)
			}
		})
	}
}
