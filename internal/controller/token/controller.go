// Package token maintains the Secret of each Token: a JWT for one Slurm user, renewed well before it expires and signed
// again when the key or the spec has changed.
//
// The Secret itself is the only state: a token in it is kept if the current key signed it, for the right user and
// lifetime, and it is not due for renewal.
package token

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A Reconciler reconciles Tokens.
type Reconciler struct {
	Client   client.Client
	Children *child.Applier
	Status   *status.Writer
	Clock    clock.PassiveClock
}

// A scope is the state that one reconcile observes.
type scope struct {
	token *slinkyv1beta1.Token
	// key is the signing key; nil if it does not exist.
	key []byte
	// kept is the token in the Secret; empty if there is none.
	kept string
	// former are the Token's Secrets under former names.
	former []*corev1.Secret
	now    time.Time
}

// Reconcile reconciles the Secret of one Token.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	scope, err := r.observe(ctx, request)
	if err != nil || scope == nil {
		return ctrl.Result{}, err
	}
	plan := decide(scope)
	err = r.act(ctx, scope, plan)
	if foreign, ok := errors.AsType[*child.ForeignError](err); ok {
		plan, err = conflict(foreign), nil
	}
	return retry.After(plan.requeueAfter, errors.Join(err, r.report(ctx, scope, plan, err)))
}

func (r *Reconciler) observe(ctx context.Context, request ctrl.Request) (*scope, error) {
	token, err := reference.Object(ctx, r.Client, request.Namespace, request.Name, &slinkyv1beta1.Token{})
	if err != nil || token == nil {
		return nil, err // objects that it owns are garbage-collected
	}
	scope := &scope{token: token, now: r.Clock.Now()}
	key, kept := token.Spec.JWTKey(), naming.TokenSecret(token)
	if scope.key, err = reference.SecretValue(ctx, r.Client, token.Namespace, *key); err != nil {
		return nil, err
	}
	value, err := reference.SecretValue(ctx, r.Client, token.Namespace, kept)
	if err != nil {
		return nil, err
	}
	scope.kept = string(value)
	var secrets corev1.SecretList
	if err := r.Client.List(ctx, &secrets, client.InNamespace(token.Namespace), client.MatchingLabels{naming.LabelManagedBy: naming.ManagedBy}); err != nil {
		return nil, err
	}
	for i := range secrets.Items {
		if secret := &secrets.Items[i]; metav1.IsControlledBy(secret, token) && secret.Name != kept.Name {
			scope.former = append(scope.former, secret)
		}
	}
	return scope, nil
}

func (r *Reconciler) act(ctx context.Context, scope *scope, plan plan) error {
	if plan.token == nil {
		return nil
	}
	if plan.replace {
		// An immutable Secret cannot be changed, only re-created.
		old := &corev1.Secret{}
		old.Namespace, old.Name = scope.token.Namespace, naming.TokenSecret(scope.token).Name
		if err := r.Children.Delete(ctx, scope.token, old); err != nil {
			return err
		}
	}
	if err := r.Children.Apply(ctx, scope.token, secret(scope.token, plan.token.Text), &corev1.Secret{}); err != nil {
		return err
	}
	for _, former := range scope.former {
		if err := r.Children.Delete(ctx, scope.token, former); err != nil {
			return err
		}
	}
	return nil
}
