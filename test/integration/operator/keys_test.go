//go:build integration

package operator_test

import (
	"bytes"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// R37: a key under a documented name is used, by the daemons, by the operator's session and by Tokens that refer to
// another documented name.
func TestExistingJWTKeysAreUsed(t *testing.T) {
	t.Parallel()
	for key, secret := range map[string]string{"jwt_hs256.key": "slurm-auth-jwt", "jwt.key": "slurm-auth-jwt"} {
		t.Run(secret+" "+key, func(t *testing.T) {
			world := newWorld(t)
			token := &slinkyv1beta1.Token{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Spec: slinkyv1beta1.TokenSpec{
				Username:  "alice",
				JWTKeyRef: &slinkyv1beta1.SecretKeyReference{Name: "slurm-auth-jwths256", Key: "jwt_hs256.key"},
			}}
			world.create(t, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: secret}, Data: map[string][]byte{key: bytes.Repeat([]byte{7}, 32)},
			}, token)
			world.readyControllerWith(t, slinkyv1beta1.ControllerSpec{}, secret)
			world.eventually(t, "alice", token, func() error {
				if token.Status.IssuedAt == nil {
					return errors.New("no token is issued")
				}
				return nil
			})
			if err := world.Get(t.Context(), client.ObjectKey{Name: "slurm-auth-jwths256"},
				&corev1.Secret{}); !apierrors.IsNotFound(err) {
				t.Errorf("another key was generated: %v", err)
			}
		})
	}
}
