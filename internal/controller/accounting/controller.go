// Package accounting runs slurmdbd for each Accounting: a StatefulSet with one pod, a Service in front of it, and a
// Secret with slurmdbd.conf, which contains the database password.
//
// slurmdbd reads its configuration, password and keys only when it starts: the pod template has a digest of them, and a
// change replaces the pod. The pod is ready when slurmdbd answers a query that needs the database. While it is not
// ready, the operator reads the database error from its helper in slurmdbd's pod.
package accounting

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmdbd"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A Reconciler reconciles Accountings.
type Reconciler struct {
	Client   client.Client
	Children *child.Applier
	Status   *status.Writer
	Clock    clock.PassiveClock
	Images   naming.Images
}

// A scope is the state that one reconcile observes.
type scope struct {
	accounting *slinkyv1beta1.Accounting
	images     naming.Images
	keys       naming.Keys
	// slurmKey and jwtKey are the Secrets of the keys; nil if they do not exist.
	slurmKey, jwtKey *corev1.Secret
	// password and jwks are empty if they do not exist.
	password, jwks string
	// statefulSet is nil if there is none yet.
	statefulSet *appsv1.StatefulSet
	pods        []corev1.Pod
	// database is slurmdbd's report about its database while it is not ready; nil if it cannot be queried.
	database *slurmdbd.Report
	now      time.Time
}

// Reconcile reconciles slurmdbd with one Accounting.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	scope, err := r.observe(ctx, request)
	if err != nil || scope == nil {
		return ctrl.Result{}, err
	}
	plan := decide(scope)
	err = r.act(ctx, scope, plan)
	if refusal, ok := child.Refusal(err); ok {
		return retry.After(child.RetryRefusal, r.report(ctx, scope, obstacle(refusal), nil))
	}
	return retry.After(requeueAfter(scope), errors.Join(err, r.report(ctx, scope, plan, err)))
}

func (r *Reconciler) observe(ctx context.Context, request ctrl.Request) (*scope, error) {
	accounting, err := reference.Object(ctx, r.Client, request.Namespace, request.Name, &slinkyv1beta1.Accounting{})
	if err != nil || accounting == nil {
		return nil, err // objects that it owns are garbage-collected
	}
	scope := &scope{accounting: accounting, images: r.Images, keys: naming.AccountingKeys(accounting), now: r.Clock.Now()}
	if err := r.observeReferences(ctx, scope); err != nil {
		return nil, err
	}
	scope.statefulSet, err = reference.Object(ctx, r.Client, accounting.Namespace, naming.Accounting(accounting.Name), &appsv1.StatefulSet{})
	if err != nil {
		return nil, err
	}
	if scope.pods, err = reference.Pods(ctx, r.Client, naming.Slurmdbd, accounting); err != nil {
		return nil, err
	}
	scope.database = queryDatabase(ctx, scope.pods)
	return scope, nil
}

// observeReferences reads the objects that the spec references.
func (r *Reconciler) observeReferences(ctx context.Context, scope *scope) (err error) {
	namespace, spec := scope.accounting.Namespace, scope.accounting.Spec
	if scope.slurmKey, err = reference.Object(ctx, r.Client, namespace, scope.keys.Slurm.Name, &corev1.Secret{}); err != nil {
		return err
	}
	if scope.jwtKey, err = reference.Object(ctx, r.Client, namespace, scope.keys.JWT.Name, &corev1.Secret{}); err != nil {
		return err
	}
	if spec.JWKSKeyRef != nil {
		if scope.jwks, err = reference.ConfigMapValue(ctx, r.Client, namespace, *spec.JWKSKeyRef); err != nil {
			return err
		}
	}
	if spec.StorageConfig == nil || spec.StorageConfig.PasswordKeyRef == nil {
		return nil
	}
	password, err := reference.SecretValue(ctx, r.Client, namespace, *spec.StorageConfig.PasswordKeyRef)
	scope.password = string(password)
	return err
}

// queryTimeout is the deadline of a query to the helper in slurmdbd's pod.
const queryTimeout = 2 * time.Second

// queryDatabase queries the helper in a running pod that is not ready for slurmdbd's report about its database.
func queryDatabase(ctx context.Context, pods []corev1.Pod) *slurmdbd.Report {
	pod := unready(pods)
	if pod == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	report, err := slurmdbd.Ask(ctx, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(naming.PortAgent)))
	if err != nil {
		return nil // slurmdbd is starting or terminating, which the pod's status shows better
	}
	return &report
}

// requeueAfter returns when to query slurmdbd again: while it is not ready, as often as it retries the connection. When
// it becomes ready, the pod's status changes.
func requeueAfter(scope *scope) time.Duration {
	if unready(scope.pods) == nil {
		return 0
	}
	return 5 * time.Second
}

func (r *Reconciler) act(ctx context.Context, scope *scope, plan plan) error {
	owner := scope.accounting
	for _, key := range plan.keys {
		if err := r.Children.CreateOnce(ctx, key); err != nil {
			return err
		}
	}
	if plan.remove {
		name := metav1.ObjectMeta{Namespace: owner.Namespace, Name: naming.Accounting(owner.Name)}
		return errors.Join(
			r.Children.Delete(ctx, owner, &appsv1.StatefulSet{ObjectMeta: name}),
			r.Children.Delete(ctx, owner, &corev1.Service{ObjectMeta: name}),
			r.Children.Delete(ctx, owner, &corev1.Secret{ObjectMeta: name}))
	}
	if plan.children == nil {
		return nil
	}
	if err := r.Children.Apply(ctx, owner, plan.children.secret, &corev1.Secret{}); err != nil {
		return err
	}
	if err := r.Children.Apply(ctx, owner, plan.children.service, &corev1.Service{}); err != nil {
		return err
	}
	scope.statefulSet = &appsv1.StatefulSet{}
	if err := r.Children.Apply(ctx, owner, plan.children.statefulSet, scope.statefulSet); err != nil {
		return err
	}
	if pod := outdated(scope); pod != nil && pod.DeletionTimestamp == nil {
		return r.Children.Replace(ctx, pod)
	}
	return nil
}

// outdated returns the pod that does not have the current template; nil if there is none.
func outdated(scope *scope) *corev1.Pod {
	for i := range scope.pods {
		if podtemplate.Outdated(&scope.pods[i], scope.statefulSet) {
			return &scope.pods[i]
		}
	}
	return nil
}
