package operator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/metric"
)

// collectObjects sends the metrics of all custom resources.
func (c *collector) collectObjects(ctx context.Context, send sender) {
	for _, kind := range kinds() {
		made, err := c.reader.Scheme().New(slinkyv1beta1.SchemeGroupVersion.WithKind(kind + "List"))
		list, ok := made.(client.ObjectList)
		if err != nil || !ok {
			panic(fmt.Sprintf("the scheme has no list of %s: %v", kind, err)) // kinds come from the scheme
		}
		if err := c.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			continue // the cache is not synced yet; the next scrape will succeed
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			collectObject(kind, item, send)
			return nil
		})
	}
}

func collectObject(kind string, item runtime.Object, send sender) {
	switch object := item.(type) {
	case *slinkyv1beta1.Controller:
		collectConditions(kind, object, object.Status.Conditions, send)
	case *slinkyv1beta1.Accounting:
		collectConditions(kind, object, object.Status.Conditions, send)
	case *slinkyv1beta1.RestApi:
		collectConditions(kind, object, object.Status.Conditions, send)
		if expires := object.Status.CertificateExpiresAt; expires != nil {
			send(metric.RestAPICertificateExpiry, float64(expires.Unix()), object.Namespace, object.Name)
		}
	case *slinkyv1beta1.LoginSet:
		collectConditions(kind, object, object.Status.Conditions, send)
	case *slinkyv1beta1.NodeSet:
		collectConditions(kind, object, object.Status.Conditions, send)
		collectNodeSet(object, send)
	case *slinkyv1beta1.Token:
		collectConditions(kind, object, object.Status.Conditions, send)
		collectToken(object, send)
	}
}

func collectConditions(kind string, object client.Object, conditions []metav1.Condition, send sender) {
	namespace, name := object.GetNamespace(), object.GetName()
	for _, condition := range conditions {
		send(metric.Condition, 1, kind, namespace, name, condition.Type, string(condition.Status), condition.Reason)
		send(metric.ConditionTransition, float64(condition.LastTransitionTime.Unix()), kind, namespace, name,
			condition.Type)
	}
}

func collectNodeSet(set *slinkyv1beta1.NodeSet, send sender) {
	is := &set.Status
	send(metric.NodeSetInfo, 1, set.Namespace, set.Name, set.Spec.ControllerRef.Name)
	for state, nodes := range map[string]int32{
		"idle": is.SlurmIdle, "allocated": is.SlurmAllocated, "down": is.SlurmDown, "drain": is.SlurmDrain,
	} {
		send(metric.NodeSetNodes, float64(nodes), set.Namespace, set.Name, state)
	}
	for _, count := range []struct {
		definition metric.Definition
		pods       int32
	}{
		{metric.DesiredPods, is.Desired},
		{metric.Pods, is.Replicas},
		{metric.ReadyPods, is.ReadyReplicas},
		{metric.AvailablePods, is.AvailableReplicas},
		{metric.OutdatedPods, max(is.Replicas-is.UpdatedReplicas, 0)},
	} {
		send(count.definition, float64(count.pods), set.Namespace, set.Name)
	}
}

func collectToken(token *slinkyv1beta1.Token, send sender) {
	if issued := token.Status.IssuedAt; issued != nil {
		send(metric.TokenIssued, float64(issued.Unix()), token.Namespace, token.Name)
	}
	if expires := token.Status.ExpiresAt; expires != nil {
		send(metric.TokenExpiry, float64(expires.Unix()), token.Namespace, token.Name)
	}
}
