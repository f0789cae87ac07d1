package nodeset

import (
	"context"
	"encoding/json"
	"errors"
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
)

// markPods writes onto the pods what Slurm says of their nodes, where that has changed. Pods that may go are spared: they are
// gone before anybody reads it.
func (r *Reconciler) markPods(ctx context.Context, scope *scope, next *plan.Plan) error {
	if scope.snapshot.Slurm == nil || !scope.snapshot.Answers {
		return nil // what is known may be wrong by now
	}
	going := next.Goes()
	var labels, conditions []func() error
	limit := paceOfMarks(scope, next)
	for i := range scope.pods {
		pod := &scope.pods[i]
		if pod.DeletionTimestamp != nil || going[pod.Name] || r.expectations.outrun(scope.set.UID, pod) {
			continue
		}
		node := worker.SlurmName(pod)
		record, _ := scope.snapshot.Slurm.Node(node)
		marks := marksOf(record, scope.snapshot.Slurm.Loads[node])
		if patch := marks.metadataPatch(pod); patch != nil {
			labels = append(labels, func() error { return r.patchMetadata(ctx, scope.set, pod, patch) })
		}
		if len(conditions) < limit {
			if patch := marks.statusPatch(pod, scope.now); patch != nil {
				conditions = append(conditions, func() error { return r.patchConditions(ctx, scope.set, pod, patch) })
			}
		}
	}
	return errors.Join(
		evenly(ctx, len(labels), marksAtOnce, func(index int) error { return labels[index]() }), // they protect jobs, so they come first
		evenly(ctx, len(conditions), marksAtOnce, func(index int) error { return conditions[index]() }),
	)
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
	if err := r.Client.Status().Patch(ctx, written, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner(naming.ManagedBy)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the conditions of pod %s: %w", pod.Name, err))
	}
	r.expectations.expectWritten(set.UID, written)
	return nil
}

// podOnly is a pod to be patched: the cache's own must not be written to.
func podOnly(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
}

// marks are what Kubernetes is told of a Slurm node.
type marks struct {
	// protect says that jobs hold the node.
	protect bool
	// deadline is when they end at the latest; empty when there are none, or when that is open.
	deadline string
	// states are Slurm's words for the node's state, each with why.
	states map[corev1.PodConditionType]string
}

func marksOf(record *slurm.Node, load slurm.Load) marks {
	is := marks{protect: load.Jobs() > 0, states: map[corev1.PodConditionType]string{}}
	if is.protect && !load.Unlimited {
		is.deadline = load.Until.UTC().Format(time.RFC3339)
	}
	if record == nil {
		return is
	}
	why := ""
	if record.Draining() || record.State == slurm.StateDown || record.Flags.Has(slurm.FlagFail) {
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
func (m marks) metadataPatch(pod *corev1.Pod) []byte {
	labels, annotations := map[string]any{}, map[string]any{}
	if _, protected := pod.Labels[slinkyv1beta1.LabelPodProtect]; protected != m.protect {
		labels[slinkyv1beta1.LabelPodProtect] = nil
		if m.protect {
			labels[slinkyv1beta1.LabelPodProtect] = "true"
		}
	}
	if pod.Annotations[slinkyv1beta1.AnnotationPodDeadline] != m.deadline {
		annotations[slinkyv1beta1.AnnotationPodDeadline] = nil
		if m.deadline != "" {
			annotations[slinkyv1beta1.AnnotationPodDeadline] = m.deadline
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
	if len(changes) == 0 {
		return nil
	}
	return encode(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": map[string]any{"conditions": changes}})
}

func encode(patch any) []byte {
	data, err := json.Marshal(patch)
	if err != nil {
		panic(err) // never: maps, strings and API types always encode
	}
	return data
}
