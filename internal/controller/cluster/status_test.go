package cluster

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

func TestRefusedLinesAreMappedToExtraConf(t *testing.T) {
	const extraConf = "SlurmdTimeout=30\nSchedulerTpye=sched/backfill\n"
	for detail, want := range map[string]string{
		"slurm.conf line 22: SchedulerTpye=sched/backfill\nParsing error at unrecognized key: SchedulerTpye": "spec.extraConf line 2: SchedulerTpye=sched/backfill\n" +
			"Parsing error at unrecognized key: SchedulerTpye",
		"slurm.conf line 3: MaxNodeCount=2": "slurm.conf line 3: MaxNodeCount=2",
		"slurmctld gave no reason":          "slurmctld gave no reason",
	} {
		if got := inExtraConf(detail, extraConf); got != want {
			t.Errorf("inExtraConf(%q) = %q, want %q", detail, got, want)
		}
	}
}

// kubectl wait --for=condition=Ready must not return before the last pod is of the present template.
func TestControllerIsNotReadyWhileAPodIsReplaced(t *testing.T) {
	const stamp = slinkyv1beta1.GroupName + "/template-hash"
	for name, test := range map[string]struct {
		template string // the stamp of the present template; that of the pod is a
		deleted  bool
		former   []string // pods of backups that the spec no longer has
		want     status.Verdict
	}{
		"the pod is of the present template": {"a", false, nil, status.Ready("slurmctld is ready")},
		"pods of former backups still run": {"a", false, []string{"slurm-controller-1", "slurm-controller-2"},
			status.Progressing(slinkyv1beta1.ReasonUpdating,
				"2 of 3 pods of slurmctld are being deleted, such as slurm-controller-2")},
		"the template has changed": {"b", false, nil, status.Progressing(slinkyv1beta1.ReasonUpdating,
			"the pods of slurmctld are being replaced")},
		"the pod is being deleted": {"a", true, nil, status.Progressing(slinkyv1beta1.ReasonUpdating,
			"the pods of slurmctld are being replaced")},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(promoteWith(hashOf(t, newScope()), "new"))
			scope.statefulSet = &appsv1.StatefulSet{}
			scope.statefulSet.Spec.Template.Annotations = map[string]string{stamp: test.template}
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: "slurm-controller-0", Annotations: map[string]string{stamp: "a"},
			}}
			pod.Spec.Volumes = []corev1.Volume{onClaim("slurm-controller-state")}
			if test.deleted {
				pod.DeletionTimestamp = new(metav1.NewTime(start.Add(-time.Second)))
			}
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			scope.pods = []corev1.Pod{pod}
			for _, name := range test.former {
				backup := *pod.DeepCopy()
				backup.Name = name
				scope.pods = append(scope.pods, backup)
			}
			scope.controller.Status.Conditions = []metav1.Condition{{
				Type: slinkyv1beta1.ConditionSlurmReachable, Status: metav1.ConditionTrue,
			}}
			plan := progress(scope, candidate{hash: scope.promoted.hash})
			scope.agents[pod.Name] = agent.Report{FilesHash: plan.candidate.hash, RunningHash: plan.candidate.hash}
			if got := verdict(scope, plan, configurationCondition(scope, plan), nil); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

// A Controller is not ready while no job starts because partitions are closed for a costly change. It is while a change
// waits for jobs, which may take days.
func TestControllerIsNotReadyWhilePartitionsAreClosed(t *testing.T) {
	ready := func(c cluster) {
		c.pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		c.controller.Status.Conditions = []metav1.Condition{{
			Type: slinkyv1beta1.ConditionSlurmReachable, Status: metav1.ConditionTrue,
		}}
		c.apply()
		report := c.agents["slurm-controller-0"]
		report.RunningSince = report.CheckedAt // slurmds follow
		c.agents["slurm-controller-0"] = report
	}
	for name, test := range map[string]struct {
		cluster func(t *testing.T) cluster
		want    status.Verdict
		says    string
	}{
		"partitions are open": {newCluster, status.Ready("slurmctld is ready"), ""},
		"change waits for jobs": {func(t *testing.T) cluster {
			t.Helper()
			c := newCluster(t)
			c.controller.Spec.ExtraConf += "SelectType=select/linear\n"
			c.runs(1)
			return c
		}, status.Ready("slurmctld is ready"), "SelectType stays as it was until no job runs"},
		"partitions are closed": {func(t *testing.T) cluster {
			t.Helper()
			c := newClosedCluster(t)
			c.nodes = nil
			return c
		}, status.Progressing(slinkyv1beta1.ReasonApplying, ""), "no job starts for a moment"},
		"slurmds follow the change": {func(t *testing.T) cluster {
			t.Helper()
			c := newClosedCluster(t)
			c.apply()
			c.reconcile(t)
			c.expect(t, linear, true)
			return c
		}, status.Progressing(slinkyv1beta1.ReasonApplying, ""), "no job starts for a moment"},
	} {
		t.Run(name, func(t *testing.T) {
			c := test.cluster(t)
			ready(c)
			next := decide(c.scope)
			if next.stage != settled {
				t.Fatalf("stage %d", next.stage)
			}
			configuration := configurationCondition(c.scope, next)
			if !strings.Contains(configuration.Message, test.says) {
				t.Errorf("the condition is %+v", configuration)
			}
			want := test.want
			if want.Message == "" {
				want.Message = configuration.Message
			}
			if got := verdict(c.scope, next, configuration, nil); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}
