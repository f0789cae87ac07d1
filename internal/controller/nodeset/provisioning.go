package nodeset

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/observation"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/provisioning"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// A requestWatch watches ProvisioningRequests from when a NodeSet first asks for them: most clusters do not have the
// CRD, and it may be installed at any time.
type requestWatch struct {
	mu sync.Mutex
	// start starts the watch. It returns an error that meta.IsNoMatchError recognizes if there is no CRD.
	start   func() error
	started bool
	// absentUntil is until when the CRD is assumed to be missing.
	absentUntil time.Time
}

// crdInterval is how often to look for the CRD.
const crdInterval = 5 * time.Minute

// setUpRequestWatch prepares the watch, with which a controller reconciles the NodeSets that own ProvisioningRequests.
func (r *Reconciler) setUpRequestWatch(manager ctrl.Manager, nodeSets controller.Controller) {
	r.requests.start = func() error {
		kind := provisioning.Version.WithKind(provisioning.Kind)
		if _, err := manager.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			return err
		}
		return nodeSets.Watch(source.Kind(manager.GetCache(), &provisioning.Request{},
			handler.TypedEnqueueRequestForOwner[*provisioning.Request](manager.GetScheme(), manager.GetRESTMapper(),
				&slinkyv1beta1.NodeSet{}, handler.OnlyControllerOwner())))
	}
}

// available reports whether there are ProvisioningRequests in this Kubernetes cluster. If wanted is false, it does not
// look for the CRD.
func (w *requestWatch) available(wanted bool, now time.Time) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Before(w.absentUntil) || !w.started && !wanted {
		return false, nil
	}
	if w.started {
		return true, nil
	}
	switch err := w.start(); {
	case meta.IsNoMatchError(err):
		w.absentUntil = now.Add(crdInterval)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("watching ProvisioningRequests: %w", err)
	}
	w.started = true
	return true, nil
}

// lost records that the CRD is missing.
func (w *requestWatch) lost(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.absentUntil = now.Add(crdInterval)
}

// observeRequests finds the ProvisioningRequests of an elastic NodeSet. Without their CRD, pods are created without
// them, and the status says so.
func (r *Reconciler) observeRequests(ctx context.Context, scope *scope) error {
	elastic := scope.snapshot.Set.Elastic
	if elastic == nil {
		return nil
	}
	var spec *slinkyv1beta1.ElasticProvisioning
	if scope.set.Spec.Elastic != nil {
		spec = scope.set.Spec.Elastic.Provisioning
	}
	asked, err := r.hasAsked(ctx, scope)
	if err != nil {
		return err
	}
	available, err := r.requests.available(spec != nil || asked, scope.now)
	if err != nil {
		return err
	}
	scope.unprovisioned = spec != nil && !available
	if !available {
		return nil
	}
	list := &provisioning.RequestList{}
	if err := r.Client.List(ctx, list, client.InNamespace(scope.set.Namespace),
		client.MatchingLabels(naming.Managed(naming.Slurmd, scope.set.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("reading ProvisioningRequests: %w", err)
	}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], scope.set) {
			elastic.Requests = append(elastic.Requests, observation.Request(&list.Items[i]))
		}
	}
	if spec != nil {
		elastic.Class = spec.ClassName
	}
	return nil
}

// hasAsked reports whether a NodeSet has ever asked for room. If its spec no longer does, requests may be left of which
// only an earlier run of the operator knew.
func (r *Reconciler) hasAsked(ctx context.Context, scope *scope) (bool, error) {
	template, err := reference.Object(ctx, r.Client, scope.set.Namespace, desired.PodTemplateName(scope.set),
		&corev1.PodTemplate{})
	return template != nil && metav1.IsControlledBy(template, scope.set), err
}

// retryProvisioning returns when to look for the CRD again; zero for never.
func retryProvisioning(scope *scope) time.Time {
	if !scope.unprovisioned {
		return time.Time{}
	}
	return scope.now.Add(crdInterval)
}

// withdraw deletes ProvisioningRequests.
func (r *Reconciler) withdraw(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	actions := next.Of(plan.Withdraw)
	return inParallel(ctx, len(actions), parallelUpdates, func(index int) error {
		action := actions[index]
		request := &provisioning.Request{
			ObjectMeta: metav1.ObjectMeta{Namespace: scope.set.Namespace, Name: action.Request.Name},
		}
		err := r.Client.Delete(trace.Because(ctx, action.Cause, action.Why), request)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting ProvisioningRequest %s: %w", request.Name, err)
		}
		r.Metrics.did(action)
		return nil
	})
}

// requestCapacity creates ProvisioningRequests, after the PodTemplate that they name: cluster-autoscaler refuses them
// without it.
func (r *Reconciler) requestCapacity(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	actions := next.Of(plan.RequestCapacity)
	if len(actions) == 0 {
		return nil
	}
	template, err := desired.PodTemplate(scope.set, scope.template)
	if err != nil {
		return err
	}
	if err := r.Children.Apply(ctx, scope.set, template, &corev1.PodTemplate{}); err != nil {
		return err
	}
	return inParallel(ctx, len(actions), parallelUpdates, func(index int) error {
		return r.createRequest(ctx, scope, actions[index])
	})
}

func (r *Reconciler) createRequest(ctx context.Context, scope *scope, action plan.Action) error {
	request, err := desired.ProvisioningRequest(scope.set, action.Request)
	if err != nil {
		return err
	}
	err = r.Client.Create(trace.Because(ctx, action.Cause, action.Why), request, client.FieldOwner(naming.ManagedBy))
	if apierrors.IsAlreadyExists(err) {
		return nil // the cache is behind, or an earlier one is being deleted: an event follows
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		r.requests.lost(scope.now) // the CRD was deleted
	}
	if err != nil {
		return fmt.Errorf("creating ProvisioningRequest %s: %w", request.Name, err)
	}
	r.Metrics.did(action)
	for _, node := range action.Request.SlurmNodes {
		r.decisions.did(scope.set.UID, action, "", node)
	}
	return nil
}
