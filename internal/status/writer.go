package status

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/slurm-operator/slurm-operator/internal/applied"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// A Writer writes the status of objects, as one field owner.
type Writer struct {
	client   client.Client
	recorder events.EventRecorder
	owner    client.FieldOwner
	memory   applied.Memory[types.UID]
}

// NewWriter returns a writer. Each controller has its own, with its own field owner.
func NewWriter(client client.Client, recorder events.EventRecorder, owner client.FieldOwner) *Writer {
	return &Writer{client: client, recorder: recorder, owner: owner}
}

// Write applies a status to an object, unless nothing has changed since the last time, and records an event for each
// changed condition. The status is an apply configuration of the fields that the controller owns.
func (w *Writer) Write(ctx context.Context, object client.Object, conditions *Conditions, status any) error {
	configuration, err := w.configuration(object, status)
	if err != nil {
		return err
	}
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	asked := runtime.DeepCopyJSONValue(configuration.Object["status"])
	if w.memory.Unchanged(object.GetUID(), asked, live["status"]) {
		return nil
	}
	err = w.client.Status().
		Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration), w.owner, client.ForceOwnership)
	if apierrors.IsNotFound(err) {
		return nil // deleted in the meantime
	}
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	// Later calls compare the status of the typed object, so convert it to that form.
	now := object.DeepCopyObject()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(configuration.Object, now); err != nil {
		return err
	}
	if live, err = runtime.DefaultUnstructuredConverter.ToUnstructured(now); err != nil {
		return err
	}
	w.memory.Remember(object.GetUID(), asked, live["status"])
	w.log(ctx, configuration.GetKind(), object.GetName(), conditions)
	w.recordEvents(object, conditions)
	return nil
}

// log logs the changed conditions. The other fields of a status change with every job and are bookkeeping.
func (w *Writer) log(ctx context.Context, kind, name string, conditions *Conditions) {
	changed := conditions.changed()
	if len(changed) == 0 {
		trace.Debug(ctx).Info("updated status of "+kind, "name", name)
		return
	}
	texts := make([]string, len(changed))
	for i, condition := range changed {
		texts[i] = fmt.Sprintf("%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	log.FromContext(ctx).Info("updated status of "+kind, "name", name, "conditions", texts)
}

// Record records an event about a decision. The note of a second event with the same reason, action and related object
// is lost if it follows within six minutes, because Kubernetes merges the two.
func (w *Writer) Record(object, related client.Object, reason, action, note string) {
	if related == nil {
		// a nil client.Object is not a nil runtime.Object
		w.recorder.Eventf(object, nil, corev1.EventTypeNormal, reason, action, "%s", note)
		return
	}
	w.recorder.Eventf(object, related, corev1.EventTypeNormal, reason, action, "%s", note)
}

func (w *Writer) recordEvents(object client.Object, conditions *Conditions) {
	for _, condition := range conditions.unreported() {
		kind := corev1.EventTypeNormal
		if condition.Status != metav1.ConditionTrue && conditions.degraded() {
			kind = corev1.EventTypeWarning
		}
		w.recorder.Eventf(object, nil, kind, condition.Reason, condition.Type, "%s: %s", condition.Type,
			condition.Message)
	}
}

// configuration returns the apply configuration of the status. With the UID, it does not apply to an object that was
// re-created in the meantime.
func (w *Writer) configuration(object client.Object, status any) (*unstructured.Unstructured, error) {
	kind, err := w.client.GroupVersionKindFor(object)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	configuration := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	configuration.SetGroupVersionKind(kind)
	configuration.SetNamespace(object.GetNamespace())
	configuration.SetName(object.GetName())
	configuration.SetUID(object.GetUID())
	return configuration, nil
}
