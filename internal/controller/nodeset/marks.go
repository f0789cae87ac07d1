package nodeset

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// protectPods writes onto the pods whether they may be evicted, and until when their jobs run. It does not depend on anything
// else that a reconcile does: while Slurm refuses one request, other jobs stay protected. A pod whose drain is about to be lifted
// is protected first.
func (r *Reconciler) protectPods(ctx context.Context, scope *scope, next *plan.Plan) error {
	opening := map[string]bool{}
	for _, action := range next.Of(plan.Undrain) {
		opening[action.Pod.Name] = true
	}
	return r.patchPods(ctx, scope, next, len(scope.pods), func(index int) (patch []byte, write patchPod) {
		pod, protected, known := &scope.pods[index], true, opening[scope.pods[index].Name]
		if !known {
			protected, known = scope.snapshot.Protected(&scope.snapshot.Pods[index])
		}
		if !known {
			return nil, nil // what is written on it may be right
		}
		return metadataPatch(pod, protected, deadline(scope, pod)), func(ctx context.Context, set *slinkyv1beta1.NodeSet, pod *corev1.Pod, patch []byte) error {
			return r.patchMetadata(becauseOfProtection(ctx, pod, protected), set, pod, patch)
		}
	})
}

// becauseOfProtection says in the log that evictions of a pod are refused, or allowed, from now on. The time at which its jobs end is
// bookkeeping.
func becauseOfProtection(ctx context.Context, pod *corev1.Pod, protect bool) context.Context {
	switch _, protected := pod.Labels[slinkyv1beta1.LabelPodProtect]; {
	case protected == protect:
		return trace.Quietly(ctx)
	case protect:
		return trace.Because(ctx, "Protection", "its node may have jobs: evictions are refused")
	default:
		return trace.Because(ctx, "Protection", "its node is drained and has no jobs: evictions are allowed")
	}
}

// markPods writes onto the pods what Slurm says of their nodes, where that has changed.
func (r *Reconciler) markPods(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	return r.patchPods(ctx, scope, next, paceOfMarks(scope, next), func(index int) (patch []byte, write patchPod) {
		pod := &scope.pods[index]
		record, _ := scope.snapshot.Slurm.Node(worker.SlurmName(pod))
		return marksOf(record).statusPatch(pod, scope.now), r.patchConditions
	})
}

// A patchPod writes a patch to a pod.
type patchPod func(ctx context.Context, set *slinkyv1beta1.NodeSet, pod *corev1.Pod, patch []byte) error

// patchPods writes to the pods for which there is a patch, at most so many. Pods that are deleted next are spared.
func (r *Reconciler) patchPods(ctx context.Context, scope *scope, next *plan.Plan, limit int, patchOf func(index int) ([]byte, patchPod)) error {
	if scope.snapshot.Slurm == nil || !scope.snapshot.Answers {
		return nil // what is known may be wrong by now
	}
	going := next.Goes()
	var writes []func() error
	for i := range scope.pods {
		pod := &scope.pods[i]
		if pod.DeletionTimestamp != nil || going[pod.Name] || len(writes) == limit || r.expectations.outrun(scope.set.UID, pod) {
			continue
		}
		if patch, write := patchOf(i); patch != nil {
			writes = append(writes, func() error { return write(ctx, scope.set, pod, patch) })
		}
	}
	return evenly(ctx, len(writes), marksAtOnce, func(index int) error { return writes[index]() })
}

// paceOfMarks is how many pods get their conditions, and how many nodes are described to Slurm, in one reconcile: few while many
// others are yet to come up, which is more urgent and needs the same servers. The event of what was written leads to the next
// reconcile.
func paceOfMarks(scope *scope, next *plan.Plan) int {
	coming := len(next.Of(plan.Create))
	for i := range scope.snapshot.Pods {
		if scope.snapshot.Pods[i].ReadySince.IsZero() {
			coming++
		}
	}
	if coming > marksAtOnce && coming > len(scope.pods)/50 {
		return fewMarks
	}
	return mostMarks
}

func (r *Reconciler) patchMetadata(ctx context.Context, set *slinkyv1beta1.NodeSet, pod *corev1.Pod, patch []byte) error {
	written := podOnly(pod)
	if err := r.Client.Patch(ctx, written, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(naming.ManagedBy)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("marking pod %s: %w", pod.Name, err))
	}
	r.expectations.expectWritten(set.UID, written)
	return nil
}

func (r *Reconciler) patchConditions(ctx context.Context, set *slinkyv1beta1.NodeSet, pod *corev1.Pod, patch []byte) error {
	written := podOnly(pod)
	if err := r.Client.Status().Patch(trace.Quietly(ctx), written, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner(naming.ManagedBy)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the conditions of pod %s: %w", pod.Name, err))
	}
	r.expectations.expectWritten(set.UID, written)
	return nil
}

// podOnly is a pod to be patched: the cache's own must not be written to.
func podOnly(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
}

// deadline is when the jobs of a pod end at the latest; empty when there are none, or when that is open.
func deadline(scope *scope, pod *corev1.Pod) string {
	load := scope.snapshot.Slurm.Loads[worker.SlurmName(pod)]
	if load.Jobs() == 0 || load.Unlimited || load.Until.IsZero() {
		return ""
	}
	return load.Until.UTC().Format(time.RFC3339)
}

// marks are Slurm's words for a node's state, each with the reason, and whether Slurm has the node at all.
type marks struct {
	states     map[corev1.PodConditionType]string
	registered bool
}

func marksOf(record *slurm.Node) marks {
	is := marks{states: map[corev1.PodConditionType]string{}, registered: record != nil}
	if record == nil {
		return is
	}
	why := ""
	if record.Closed() {
		why = record.Reason
	}
	for _, state := range record.StateNames() {
		is.states[slinkyv1beta1.PodConditionType(camel(state))] = why
	}
	return is
}

// camel spells one of Slurm's words as Kubernetes would: NOT_RESPONDING is NotResponding.
func camel(word string) string {
	var spelt strings.Builder
	for part := range strings.SplitSeq(word, "_") {
		if part != "" {
			spelt.WriteString(strings.ToUpper(part[:1]) + strings.ToLower(part[1:]))
		}
	}
	return spelt.String()
}

// metadataPatch is what has to change of a pod's label and annotation; nil when nothing has.
func metadataPatch(pod *corev1.Pod, protect bool, deadline string) []byte {
	labels, annotations := map[string]any{}, map[string]any{}
	if _, protected := pod.Labels[slinkyv1beta1.LabelPodProtect]; protected != protect {
		labels[slinkyv1beta1.LabelPodProtect] = nil
		if protect {
			labels[slinkyv1beta1.LabelPodProtect] = "true"
		}
	}
	if pod.Annotations[slinkyv1beta1.AnnotationPodDeadline] != deadline {
		annotations[slinkyv1beta1.AnnotationPodDeadline] = nil
		if deadline != "" {
			annotations[slinkyv1beta1.AnnotationPodDeadline] = deadline
		}
	}
	if len(labels)+len(annotations) == 0 {
		return nil
	}
	return encode(map[string]any{"metadata": map[string]any{"uid": pod.UID, "labels": labels, "annotations": annotations}})
}

// statusPatch is what has to change of a pod's conditions; nil when nothing has. It names only those that are ours, so that it
// does not race with the kubelet.
func (m marks) statusPatch(pod *corev1.Pod, now time.Time) []byte {
	var changes []any
	missing := maps.Clone(m.states)
	registration, known := m.registration(pod)
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		if !strings.HasPrefix(string(condition.Type), slinkyv1beta1.PodConditionPrefix) {
			continue
		}
		why, has := m.states[condition.Type]
		switch {
		case !has:
			changes = append(changes, map[string]any{"type": condition.Type, "$patch": "delete"})
		case condition.Status == corev1.ConditionTrue && condition.Message == why:
			delete(missing, condition.Type)
		}
	}
	for state, why := range missing {
		// The message is named even if it is empty: the type of the API would leave it out, and the one of a drain would stay.
		changes = append(changes, map[string]any{"type": state, "status": corev1.ConditionTrue, "message": why, "lastTransitionTime": metav1.NewTime(now)})
	}
	if known {
		changes = append(changes, map[string]any{
			"type": slinkyv1beta1.PodConditionRegistered, "status": registration, "lastTransitionTime": metav1.NewTime(now),
		})
	}
	if len(changes) == 0 {
		return nil
	}
	return encode(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": map[string]any{"conditions": changes}})
}

// registration is what to write about whether Slurm has a pod's node, if anything: nothing before it first has.
func (m marks) registration(pod *corev1.Pod) (is corev1.ConditionStatus, changed bool) {
	is = corev1.ConditionFalse
	if m.registered {
		is = corev1.ConditionTrue
	}
	for i := range pod.Status.Conditions {
		if condition := &pod.Status.Conditions[i]; condition.Type == slinkyv1beta1.PodConditionRegistered {
			return is, condition.Status != is
		}
	}
	return is, m.registered
}

func encode(patch any) []byte {
	data, err := json.Marshal(patch)
	if err != nil {
		panic(err) // never: maps, strings and API types always encode
	}
	return data
}
