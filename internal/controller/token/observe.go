package token

import (
	"context"
	"crypto/subtle"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/tokenpolicy"
)

// A scope is the state that one reconcile observes.
type scope struct {
	token *slinkyv1beta1.Token
	// key is the signing key; nil if it does not exist.
	key []byte
	// governing are the Controllers with a policy for tokens of this key.
	governing []*slinkyv1beta1.Controller
	// kept is the token in the Secret; empty if there is none.
	kept string
	// immutable is true if that Secret cannot be changed, only re-created.
	immutable bool
	// former are the Token's Secrets under former names.
	former []*corev1.Secret
	now    time.Time
}

func (r *Reconciler) observe(ctx context.Context, request ctrl.Request) (*scope, error) {
	token, err := reference.Object(ctx, r.Client, request.Namespace, request.Name, &slinkyv1beta1.Token{})
	if err != nil || token == nil {
		return nil, err // objects that it owns are garbage-collected
	}
	scope := &scope{token: token, now: r.Clock.Now()}
	key, kept := token.Spec.JWTKey(), naming.TokenSecret(token)
	if _, scope.key, err = reference.FirstSecretValue(ctx, r.Client, token.Namespace,
		naming.JWTNames(*key)...); err != nil {
		return nil, err
	}
	if scope.governing, err = r.governing(ctx, token, scope.key); err != nil {
		return nil, err
	}
	value, err := reference.SecretValue(ctx, r.Client, token.Namespace, kept)
	if err != nil {
		return nil, err
	}
	scope.kept = string(value)
	var secrets corev1.SecretList
	if err := r.Client.List(ctx, &secrets, client.InNamespace(token.Namespace),
		client.MatchingLabels{naming.LabelManagedBy: naming.ManagedBy}); err != nil {
		return nil, err
	}
	for i := range secrets.Items {
		switch secret := &secrets.Items[i]; {
		case !metav1.IsControlledBy(secret, token):
		case secret.Name == kept.Name:
			scope.immutable = secret.Immutable != nil && *secret.Immutable
		default:
			scope.former = append(scope.former, secret)
		}
	}
	return scope, nil
}

// governing returns the Controllers whose policy applies to a Token, including those that are being deleted: slurmctld
// still accepts its tokens. A Controller has the key of the Token if the names are the same, and also if the values
// are: the name of a copy is no way around a policy.
func (r *Reconciler) governing(ctx context.Context, token *slinkyv1beta1.Token,
	key []byte) ([]*slinkyv1beta1.Controller, error) {
	var controllers slinkyv1beta1.ControllerList
	if err := r.Client.List(ctx, &controllers, client.InNamespace(token.Namespace)); err != nil {
		return nil, err
	}
	var governing []*slinkyv1beta1.Controller
	for i := range controllers.Items {
		controller := &controllers.Items[i]
		if controller.Spec.TokenPolicy == nil {
			continue
		}
		accounting, err := r.accounting(ctx, controller)
		if err != nil {
			return nil, err
		}
		if tokenpolicy.Governs(controller, accounting, token) {
			governing = append(governing, controller)
			continue
		}
		_, own, err := reference.FirstSecretValue(ctx, r.Client, token.Namespace,
			naming.ControllerKeys(controller, accounting).JWTNames...)
		if err != nil {
			return nil, err
		}
		if key != nil && subtle.ConstantTimeCompare(own, key) == 1 {
			governing = append(governing, controller)
		}
	}
	return governing, nil
}

// accounting returns the Accounting of a Controller, also while it is being deleted; nil if the Controller has none.
func (r *Reconciler) accounting(ctx context.Context,
	controller *slinkyv1beta1.Controller) (*slinkyv1beta1.Accounting, error) {
	if controller.Spec.AccountingRef == nil {
		return nil, nil
	}
	// Without the Accounting, its key is the one that is generated for it.
	accounting := &slinkyv1beta1.Accounting{ObjectMeta: metav1.ObjectMeta{
		Namespace: controller.Namespace, Name: controller.Spec.AccountingRef.Name,
	}}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(accounting), accounting)
	return accounting, client.IgnoreNotFound(err)
}
