package why_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
	"github.com/slurm-operator/slurm-operator/internal/plugin/why"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

var now = time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)

// A scene is a node with its pod, which runs, is ready and up to date, and its NodeSet.
type scene struct {
	record *slurm.Node
	asked  bool
	jobs   []slurmcli.Job
	pod    *corev1.Pod
	node   *corev1.Node
	set    *slinkyv1beta1.NodeSet
}

func newScene() *scene {
	return &scene{
		asked:  true,
		record: &slurm.Node{Name: "gpu-0", State: slurm.StateIdle},
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "gpu-0", Annotations: map[string]string{}, Labels: map[string]string{
				slinkyv1beta1.LabelPodHostname: "gpu-0", appsv1.ControllerRevisionHashLabelKey: "new",
			}},
			Spec: corev1.PodSpec{NodeName: "node-1"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue},
				{Type: slinkyv1beta1.PodConditionRegistered, Status: corev1.ConditionTrue},
			}},
		},
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		set: &slinkyv1beta1.NodeSet{
			ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Status: slinkyv1beta1.NodeSetStatus{NodeSetHash: "new"},
		},
	}
}

// explained returns the explanation as text.
func (s *scene) explained() string {
	all := &nodes.Input{Asked: s.asked, Jobs: s.jobs, Pods: []corev1.Pod{*s.pod}}
	if s.record != nil {
		all.Slurm = []slurm.Node{*s.record}
	}
	result := why.ExplainNode(&why.Input{
		Name: "gpu-0", Record: s.record, Asked: s.asked, Joined: nodes.Join(all)[0], Jobs: s.jobs, Pod: s.pod,
		KubernetesNode: s.node, NodeSet: s.set, Now: now,
	})
	page := &output.Page{}
	result.Draw(page)
	return page.String()
}

func TestEveryCauseIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*scene)
		want   []string
	}{
		"open": {func(*scene) {}, []string{"gpu-0 takes jobs\n"}},
		"a failed node": {func(s *scene) {
			s.record.Flags, s.record.Reason, s.record.ReasonBy = slurm.FlagFail|slurm.FlagDrain, "disk", "root"
		}, []string{"takes no new jobs", "it is IDLE+DRAIN+FAIL: disk (by root)", "undrain gpu-0"}},
		"an invalid registration": {func(s *scene) { s.record.Flags = slurm.FlagInvalidReg | slurm.FlagDrain },
			[]string{"no reason given", "registered with fewer CPUs"}},
		"a reservation": {func(s *scene) { s.record.Flags, s.record.Reservation = slurm.FlagMaintenance, "update" },
			[]string{"a reservation includes it: update", "scontrol show reservation update"}},
		"a lost record": {
			func(s *scene) { s.record = nil }, []string{"gpu-0 is not registered", "Slurm has lost its record"},
		},
		"a slurmd that never registered": {func(s *scene) {
			s.record, s.pod.Status.Conditions = nil, s.pod.Status.Conditions[:1]
		}, []string{"has not registered with Slurm", "kubectl logs gpu-0 --container=slurmd"}},
		"an administrator's drain above a cordon": {func(s *scene) {
			s.record.Flags, s.record.Reason, s.node.Spec.Unschedulable = slurm.FlagDrain, "fan", true
		}, []string{"not by the operator: fan", "its Kubernetes node node-1 is cordoned", "kubectl uncordon node-1"}},
		"a cordon with a reason that Slurm does not show yet": {func(s *scene) {
			s.node.Spec.Unschedulable = true
			s.node.Annotations = map[string]string{slinkyv1beta1.AnnotationNodeCordonReason: "new firmware"}
		}, []string{"open to jobs, with restrictions", "node-1 is cordoned (new firmware)"}},
		"a condition of the Kubernetes node": {func(s *scene) {
			s.set.Spec.DrainOnNodeConditions = []slinkyv1beta1.NodeConditionRule{{Type: "GPUFault"}}
			s.node.Status.Conditions = []corev1.NodeCondition{
				{Type: "GPUFault", Status: corev1.ConditionTrue, Message: "XID 79"},
			}
		}, []string{"has the condition GPUFault=True, for which the NodeSet asks for a drain: XID 79"}},
		"a Kubernetes node that is about to be reclaimed": {func(s *scene) {
			s.node.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
		}, []string{"has the taint karpenter.sh/disrupted, for which the NodeSet asks for a drain"}},
		"a terminating pod": {func(s *scene) { s.pod.DeletionTimestamp = &metav1.Time{Time: now} },
			[]string{"its pod is terminating"}},
		"a failing container": {func(s *scene) {
			s.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "slurmd", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"},
			}, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}
		}, []string{"the container slurmd of its pod does not run: CrashLoopBackOff: back-off", "--previous"}},
		"a container that has never run, and so has no log": {func(s *scene) {
			s.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "slurmd", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"},
			}}}
		}, []string{"does not run: ImagePullBackOff: not found\n    kubectl describe pod gpu-0"}},
	} {
		t.Run(name, func(t *testing.T) { check(t, test.change, test.want) })
	}
}

func TestEveryHoldIsNamed(t *testing.T) {
	end := now.Add(2 * time.Hour)
	scaleIn := func(s *scene) {
		s.pod.Annotations[slinkyv1beta1.AnnotationPodCordon] = "true"
		s.pod.Annotations[slinkyv1beta1.AnnotationPodCordonSource] = slinkyv1beta1.PodCordonScaleIn
	}
	outdated := func(s *scene) { s.set.Status.NodeSetHash = "newer" }
	for name, test := range map[string]struct {
		change func(*scene)
		want   []string
	}{
		"jobs, and no drain yet": {func(s *scene) {
			scaleIn(s)
			s.record.State = slurm.StateMixed
			s.jobs = []slurmcli.Job{
				{ID: "7", User: "alice", State: "RUNNING", Nodes: "gpu-0", Limit: "4:00:00", End: &end},
				{ID: "8", User: "bob", State: "RUNNING", Nodes: "gpu-0", Limit: "UNLIMITED", End: &end},
				{ID: "9", User: "bob", State: "COMPLETING", Nodes: "gpu-0"},
			}
		}, []string{"its NodeSet needs fewer pods", "job 7 of alice runs until 2026-03-05 14:00 UTC at the latest (in 120m)",
			"scancel 7", "job 8 of bob runs, without a time limit", "job 9 of bob is being cleaned up",
			"it is not drained yet"}},
		"an allocation without a job": {func(s *scene) {
			outdated(s)
			s.record.AllocatedCPUs, s.record.Flags = 2, slurm.FlagDrain
		}, []string{"its revision new is out of date", "its record shows an allocation"}},
		"a pod that a user cordoned": {func(s *scene) {
			outdated(s)
			s.pod.Annotations[slinkyv1beta1.AnnotationPodCordon] = "true"
		}, []string{"a user has cordoned the pod, so no update replaces it", "pod-cordon-"}},
		"an update on request": {func(s *scene) {
			outdated(s)
			s.set.Status.Conditions = []metav1.Condition{{
				Type: slinkyv1beta1.ConditionUpdateInProgress, Status: metav1.ConditionFalse,
				Reason: slinkyv1beta1.ReasonUpdateOnDelete, Message: "1 pods are replaced when they are deleted by hand",
			}}
		}, []string{"the update does not go on (UpdateOnDelete): 1 pods"}},
		"Slurm that the operator does not reach": {func(s *scene) {
			outdated(s)
			s.set.Status.Conditions = []metav1.Condition{{
				Type: slinkyv1beta1.ConditionSlurmReachable, Status: metav1.ConditionFalse, Reason: "ControllerNotReady",
				Message: "slurmctld does not answer",
			}}
		}, []string{"the operator cannot reach Slurm", "SlurmReachable (ControllerNotReady): slurmctld does not answer"}},
		"a deleted NodeSet, and Slurm was not asked": {func(s *scene) {
			s.asked, s.record, s.set.DeletionTimestamp = false, nil, &metav1.Time{Time: now}
			s.pod.Annotations[slinkyv1beta1.AnnotationPodDeadline] = "2026-03-05T14:00:00Z"
		}, []string{"is not known", "its NodeSet is being deleted", "the last of which ends at 2026-03-05 14:00 UTC"}},
		"a record that is lost": {func(s *scene) {
			outdated(s)
			s.record = nil
		}, []string{"its slurmd may register at any moment"}},
		"nothing": {func(s *scene) {
			outdated(s)
			s.record.Flags, s.record.Reason = slurm.FlagDrain, slurm.OurReason("update")
		}, []string{"nothing is known that keeps it"}},
	} {
		t.Run(name, func(t *testing.T) { check(t, test.change, test.want) })
	}
}

func check(t *testing.T, change func(*scene), want []string) {
	t.Helper()
	scene := newScene()
	change(scene)
	text := scene.explained()
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("does not say %q:\n%s", part, text)
		}
	}
}

func TestLiftNamesTheCause(t *testing.T) {
	for cause, want := range map[string]string{
		"scale-in": "kubectl scale nodeset gpu", "update": "restore the previous spec of the NodeSet gpu",
		"NodeSet is being deleted": "cannot be cancelled", "pod is cordoned": "kubectl annotate pod gpu-0",
		"new firmware": "kubectl uncordon node-1",
	} {
		node := &nodes.Node{
			Name: "gpu-0", Pod: "gpu-0", NodeSet: "gpu", KubernetesNode: "node-1", Reason: slurm.OurReason(cause),
		}
		if got := why.Lift(node); !strings.Contains(got, want) {
			t.Errorf("%s: %q", cause, got)
		}
	}
}

func TestJobsInOtherStates(t *testing.T) {
	for state, want := range map[string]string{
		"COMPLETING": "is being cleaned up on gpu-0", "CONFIGURING": "waits until its nodes gpu-0 are ready",
		"SUSPENDED": "scontrol resume 7", "TIMEOUT": "has ended: TIMEOUT; it reached its time limit",
		"COMPLETED": "has ended: COMPLETED",
	} {
		job := slurmcli.Job{ID: "7", User: "alice", Name: "x", State: state, Nodes: "gpu-0"}
		if state == "TIMEOUT" {
			job.Reason = "TimeLimit"
		}
		page := &output.Page{}
		result := why.ExplainJob(&job, nil, now)
		result.Draw(page, now)
		if !strings.Contains(page.String(), want) {
			t.Errorf("%s: %s", state, page.String())
		}
	}
}
