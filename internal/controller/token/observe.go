package token

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
)

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
		if secret := &secrets.Items[i]; metav1.IsControlledBy(secret, token) && secret.Name != kept.Name {
			scope.former = append(scope.former, secret)
		}
	}
	return scope, nil
}
