package observation

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestPlanUpdate(t *testing.T) {
	rolling := func(maxUnavailable intstr.IntOrString) slinkyv1beta1.NodeSetUpdateStrategy {
		return slinkyv1beta1.NodeSetUpdateStrategy{
			Type:          slinkyv1beta1.RollingUpdate,
			RollingUpdate: &slinkyv1beta1.NodeSetRollingUpdate{MaxUnavailable: &maxUnavailable},
		}
	}
	scheduled := func(start time.Duration) slinkyv1beta1.NodeSetUpdateStrategy {
		return slinkyv1beta1.NodeSetUpdateStrategy{Type: slinkyv1beta1.ScheduledUpdate,
			ScheduledUpdate: &slinkyv1beta1.NodeSetScheduledUpdate{
				StartTime: &metav1.Time{Time: noon.Add(start)}, Duration: metav1.Duration{Duration: 30 * time.Minute},
			}}
	}
	tests := map[string]struct {
		strategy slinkyv1beta1.NodeSetUpdateStrategy
		want     plan.Update
	}{
		"rounds a percentage up": {
			rolling(intstr.FromString("25%")), plan.Update{Replace: true, MaxUnavailable: 3},
		},
		"accepts a number": {
			rolling(intstr.FromInt32(4)), plan.Update{Replace: true, MaxUnavailable: 4},
		},
		"defaults to 25%": {
			slinkyv1beta1.NodeSetUpdateStrategy{}, plan.Update{Replace: true, MaxUnavailable: 3},
		},
		"replaces nothing with OnDelete": {
			slinkyv1beta1.NodeSetUpdateStrategy{Type: slinkyv1beta1.OnDelete}, plan.Update{},
		},
		"replaces nothing before the window": {scheduled(time.Minute), plan.Update{MaxUnavailable: 10}},
		"replaces everything in the window":  {scheduled(0), plan.Update{Replace: true, MaxUnavailable: 10}},
		"replaces nothing after the window":  {scheduled(-30 * time.Minute), plan.Update{MaxUnavailable: 10}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := &slinkyv1beta1.NodeSet{Spec: slinkyv1beta1.NodeSetSpec{UpdateStrategy: test.strategy}}
			if diff := cmp.Diff(test.want, update(set, 10, noon)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlanPod(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon)}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	container := func(state corev1.ContainerState, restarts int32) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{
			{Name: "sidecar", State: running}, {Name: "slurmd", State: state, RestartCount: restarts},
		}
	}
	pinned := &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Values: []string{"m2"}}}},
			},
		}}}
	tests := map[string]struct {
		edit func(*corev1.Pod)
		want func(*plan.Pod)
	}{
		"has no Kubernetes node before it is scheduled": {func(*corev1.Pod) {}, func(is *plan.Pod) { is.Unscheduled = true }},
		"has the Kubernetes node that it is pinned to": {
			func(pod *corev1.Pod) { pod.Spec.Affinity = pinned },
			func(is *plan.Pod) { is.Unscheduled, is.KubernetesNode = true, "m2" },
		},
		"has not run while slurmd is waiting": {
			func(pod *corev1.Pod) { pod.Spec.NodeName, pod.Status.ContainerStatuses = "m1", container(waiting, 0) },
			func(is *plan.Pod) { is.KubernetesNode = "m1" },
		},
		"has run if slurmd is waiting after a restart": {
			func(pod *corev1.Pod) { pod.Spec.NodeName, pod.Status.ContainerStatuses = "m1", container(waiting, 1) },
			func(is *plan.Pod) { is.KubernetesNode, is.EverRan = "m1", true },
		},
		"runs since slurmd started": {
			func(pod *corev1.Pod) { pod.Spec.NodeName, pod.Status.ContainerStatuses = "m1", container(running, 0) },
			func(is *plan.Pod) { is.KubernetesNode, is.EverRan, is.Started = "m1", true, noon },
		},
		"is ready since the transition of its condition": {
			func(pod *corev1.Pod) {
				pod.Status.Conditions = []corev1.PodCondition{
					{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)},
				}
			},
			func(is *plan.Pod) { is.Unscheduled, is.ReadySince = true, noon },
		},
		"has exited if it has failed": {
			func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted" },
			func(is *plan.Pod) { is.Unscheduled, is.Exited, is.Failing = true, true, "Evicted" },
		},
		"has the annotations of the user": {
			func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{
					slinkyv1beta1.AnnotationPodCordon: "true", slinkyv1beta1.AnnotationPodDeletionCost: "-7",
				}
			},
			func(is *plan.Pod) {
				is.Unscheduled, is.Cordoned, is.Mark, is.DeletionCost = true, true, plan.MarkedByOthers, -7
			},
		},
		"is not cordoned by the operator's own mark": {
			annotated(slinkyv1beta1.AnnotationPodCordon, "true", slinkyv1beta1.AnnotationPodCordonSource, "scale-in"),
			func(is *plan.Pod) { is.Unscheduled, is.Mark = true, plan.Marked },
		},
		"is not cordoned by the mark of another operator": {
			annotated(slinkyv1beta1.AnnotationPodCordon, "true", slinkyv1beta1.AnnotationPodCordonSource, "node"),
			func(is *plan.Pod) { is.Unscheduled, is.Mark = true, plan.MarkedByOthers },
		},
		"is not cordoned by another value": {
			annotated(slinkyv1beta1.AnnotationPodCordon, "false"),
			func(is *plan.Pod) { is.Unscheduled, is.Mark = true, plan.MarkedByOthers },
		},
		"is partly marked if a user has changed the mark": {
			annotated(slinkyv1beta1.AnnotationPodCordon, "no", slinkyv1beta1.AnnotationPodCordonSource, "scale-in"),
			func(is *plan.Pod) { is.Unscheduled, is.Mark = true, plan.PartlyMarked },
		},
		"is partly marked if a user has removed the cordon": {
			annotated(slinkyv1beta1.AnnotationPodCordonSource, "scale-in"),
			func(is *plan.Pod) { is.Unscheduled, is.Mark = true, plan.PartlyMarked },
		},
		"terminates when its grace period is over": {
			func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(noon)) },
			func(is *plan.Pod) { is.Unscheduled, is.Terminating, is.Terminates = true, true, noon },
		},
		"is unprotected without the label": {
			func(pod *corev1.Pod) { delete(pod.Labels, slinkyv1beta1.LabelPodProtect) },
			func(is *plan.Pod) { is.Unscheduled, is.Unprotected = true, true },
		},
		"has a record if its NodeSet was elastic": {
			func(pod *corev1.Pod) { pod.Labels[naming.LabelElastic] = "true" },
			func(is *plan.Pod) { is.Unscheduled, is.Dynamic = true, false },
		},
		"ignores an invalid deletion cost": {
			func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{slinkyv1beta1.AnnotationPodDeletionCost: "cheap"}
			},
			func(is *plan.Pod) { is.Unscheduled = true },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: "gpu-3", UID: types.UID("u"), Labels: map[string]string{
					slinkyv1beta1.LabelPodIndex: "3", slinkyv1beta1.LabelPodHostname: "gpu-3",
					slinkyv1beta1.LabelPodProtect: "true",
				},
			}}
			want := plan.Pod{Name: "gpu-3", UID: "u", Ordinal: 3, SlurmNode: "gpu-3", Dynamic: true}
			test.edit(pod)
			test.want(&want)
			if diff := cmp.Diff(want, Pod(pod)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// annotated sets annotations of a pod, given as keys and values.
func annotated(pairs ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{}
		for pair := range slices.Chunk(pairs, 2) {
			pod.Annotations[pair[0]] = pair[1]
		}
	}
}

func TestPlanKubernetesNode(t *testing.T) {
	wanted := plan.KubernetesNode{Wanted: true, Stays: true, Selected: true}
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{"gpu": "yes"}}}
	tests := map[string]struct {
		edit  func(*corev1.Node)
		want  plan.KubernetesNode
		drain string
	}{
		"wants a pod if the template matches": {func(*corev1.Node) {}, wanted, ""},
		"wants none if a label is missing": {func(node *corev1.Node) { node.Labels = nil }, plan.KubernetesNode{},
			""},
		"wants no new pod with a NoSchedule taint": {func(node *corev1.Node) {
			node.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoSchedule}}
		}, plan.KubernetesNode{Stays: true, Selected: true}, ""},
		"keeps no pod with a NoExecute taint": {func(node *corev1.Node) {
			node.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoExecute}}
		}, plan.KubernetesNode{Selected: true}, ""},
		"wants no new pod while it is being deleted": {
			func(node *corev1.Node) { node.DeletionTimestamp = &metav1.Time{Time: noon} },
			plan.KubernetesNode{Stays: true, Selected: true}, ""},
		"keeps its pod while it is not ready": {
			func(node *corev1.Node) {
				node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}
			}, wanted, "",
		},
		"is drained while it is cordoned": {func(node *corev1.Node) { node.Spec.Unschedulable = true }, wanted,
			"Kubernetes node m1 is cordoned"},
		"is drained with the reason of the annotation": {func(node *corev1.Node) {
			node.Spec.Unschedulable = true
			node.Annotations = map[string]string{slinkyv1beta1.AnnotationNodeCordonReason: "new fans"}
		}, wanted, "new fans"},
		"is drained with a condition of drainOnNodeConditions": {
			func(node *corev1.Node) {
				node.Status.Conditions = []corev1.NodeCondition{{Type: "GPUsHealthy", Status: corev1.ConditionFalse}}
			}, wanted, "Kubernetes node m1 has condition GPUsHealthy=False",
		},
		"is drained with a taint of a node that is about to be reclaimed": {func(node *corev1.Node) {
			node.Spec.Taints = []corev1.Taint{
				{Key: "aws-node-termination-handler/spot-itn", Effect: corev1.TaintEffectPreferNoSchedule},
			}
		}, wanted, "Kubernetes node m1 has taint aws-node-termination-handler/spot-itn"},
		"is not drained with other conditions": {func(node *corev1.Node) {
			node.Status.Conditions = []corev1.NodeCondition{{Type: "GPUsHealthy", Status: corev1.ConditionTrue}}
		}, wanted, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := &slinkyv1beta1.NodeSet{Spec: slinkyv1beta1.NodeSetSpec{
				ScalingMode: slinkyv1beta1.ScalingModeDaemonSet, DrainOnNodeConditions: []slinkyv1beta1.NodeConditionRule{
					{Type: "GPUsHealthy", Status: corev1.ConditionFalse},
				},
			}}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m1", Labels: map[string]string{"gpu": "yes"}}}
			test.edit(node)
			test.want.SlurmNode, test.want.Drain = "m1", test.drain
			if diff := cmp.Diff(test.want, KubernetesNode(set, template, node)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("is drained with the taints of drainOnNodeTaints", testDrainingTaints)
	t.Run("keeps its pod without a template", func(t *testing.T) {
		set := &slinkyv1beta1.NodeSet{Spec: slinkyv1beta1.NodeSetSpec{ScalingMode: slinkyv1beta1.ScalingModeDaemonSet}}
		if !KubernetesNode(set, nil, &corev1.Node{}).Wanted {
			t.Error("no pod is wanted")
		}
	})
}

func testDrainingTaints(t *testing.T) {
	karpenter := corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}
	mine := corev1.Taint{Key: "example.com/maintenance", Value: "soon", Effect: corev1.TaintEffectNoSchedule}
	rule := func(key, value string) []slinkyv1beta1.NodeTaintRule {
		return []slinkyv1beta1.NodeTaintRule{{Key: key, Value: value}}
	}
	for name, test := range map[string]struct {
		rules  []slinkyv1beta1.NodeTaintRule
		taints []corev1.Taint
		want   string
	}{
		"of the default":             {nil, []corev1.Taint{mine, karpenter}, karpenter.Key},
		"none with an empty list":    {[]slinkyv1beta1.NodeTaintRule{}, []corev1.Taint{mine, karpenter}, ""},
		"by key":                     {rule(mine.Key, ""), []corev1.Taint{karpenter, mine}, mine.Key},
		"by key and value":           {rule(mine.Key, "soon"), []corev1.Taint{mine}, mine.Key},
		"not if the value differs":   {rule(mine.Key, "now"), []corev1.Taint{mine}, ""},
		"none without any taint":     {nil, nil, ""},
		"none with an unknown taint": {nil, []corev1.Taint{mine}, ""},
	} {
		set := &slinkyv1beta1.NodeSet{Spec: slinkyv1beta1.NodeSetSpec{DrainOnNodeTaints: test.rules}}
		got := ""
		if taint := DrainingTaint(set, &corev1.Node{Spec: corev1.NodeSpec{Taints: test.taints}}); taint != nil {
			got = taint.Key
		}
		if got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
