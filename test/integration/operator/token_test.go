//go:build integration

package operator_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/jwt"
)

func TestTokenIsSignedAndFollowsItsKey(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	token := newToken("alice")
	world.create(t, token)
	world.eventually(t, "alice", token, func() error {
		return condition(token, token.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionFalse,
			slinkyv1beta1.ReasonReferenceNotFound)
	})

	oldKey, newKey := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"jwt_hs256.key": oldKey}}
	world.create(t, key)
	secret := &corev1.Secret{}
	world.eventually(t, "alice-jwt-alice", secret, func() error { return signedBy(secret, oldKey) })
	if !metav1.IsControlledBy(secret, token) {
		t.Errorf("the Secret's owners are %v", secret.OwnerReferences)
	}
	world.eventually(t, "alice", token, func() error {
		if token.Status.IssuedAt == nil || token.Status.ExpiresAt == nil ||
			!token.Status.ExpiresAt.Equal(new(metav1.NewTime(token.Status.IssuedAt.Add(time.Hour)))) {
			return fmt.Errorf("issued at %v, expires at %v", token.Status.IssuedAt, token.Status.ExpiresAt)
		}
		return condition(token, token.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionTrue,
			slinkyv1beta1.ReasonIssued)
	})

	key.Data["jwt_hs256.key"] = newKey
	if err := world.Update(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	world.eventually(t, "alice-jwt-alice", secret, func() error { return signedBy(secret, newKey) })
}

func TestTokenSecretIsRepairedAndKeepsForeignFields(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	key := bytes.Repeat([]byte{1}, 32)
	world.create(t,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"},
			Data: map[string][]byte{"jwt_hs256.key": key}}, newToken("bob"))
	secret := &corev1.Secret{}
	world.eventually(t, "bob-jwt-bob", secret, func() error { return signedBy(secret, key) })

	secret.Annotations = map[string]string{"example.com/mine": "yes"}
	secret.Data[slinkyv1beta1.TokenKey] = []byte("tampered with")
	if err := world.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	world.eventually(t, "bob-jwt-bob", secret, func() error { return signedBy(secret, key) })
	if secret.Annotations["example.com/mine"] != "yes" {
		t.Errorf("annotations are %v", secret.Annotations)
	}
}

// A Secret that the spec no longer names would keep a token that is not renewed.
func TestTokenDeletesRenamedSecret(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	key := bytes.Repeat([]byte{1}, 32)
	token := newToken("dora")
	world.create(t,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"},
			Data: map[string][]byte{"jwt_hs256.key": key}}, token, newToken("emil"))
	secret := &corev1.Secret{}
	world.eventually(t, "dora-jwt-dora", secret, func() error { return signedBy(secret, key) })
	world.eventually(t, "emil-jwt-emil", secret, func() error { return signedBy(secret, key) })
	world.patch(t, token, `{"spec":{"secretRef":{"name":"elsewhere"}}}`)
	world.gone(t, "dora-jwt-dora", &corev1.Secret{})
	world.get(t, "elsewhere", secret)
	world.get(t, "emil-jwt-emil", secret)
}

func TestTokenDoesNotOverwriteForeignSecret(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	token := newToken("carol")
	world.create(t,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "key"},
			Data:       map[string][]byte{"jwt_hs256.key": bytes.Repeat([]byte{1}, 32)},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "carol-jwt-carol"},
			Data:       map[string][]byte{"SLURM_JWT": []byte("precious")},
		},
		token)
	world.eventually(t, "carol", token, func() error {
		return condition(token, token.Status.Conditions, slinkyv1beta1.ConditionDegraded, metav1.ConditionTrue,
			slinkyv1beta1.ReasonSecretConflict)
	})
	secret := &corev1.Secret{}
	world.get(t, "carol-jwt-carol", secret)
	if string(secret.Data["SLURM_JWT"]) != "precious" {
		t.Error("the Secret was overwritten")
	}
}

func TestTokenWithoutRefreshIsImmutable(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	key := bytes.Repeat([]byte{1}, 32)
	token := newToken("dave")
	token.Spec.Refresh = new(false)
	world.create(t,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"},
			Data: map[string][]byte{"jwt_hs256.key": key}}, token)
	secret := &corev1.Secret{}
	world.eventually(t, "dave-jwt-dave", secret, func() error { return signedBy(secret, key) })
	if secret.Immutable == nil || !*secret.Immutable {
		t.Error("the Secret is not immutable")
	}
	// A changed lifetime needs another token, so the Secret is re-created.
	first := string(secret.Data[slinkyv1beta1.TokenKey])
	if err := world.Patch(t.Context(), token,
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"lifetime":"2h"}}`))); err != nil {
		t.Fatal(err)
	}
	world.eventually(t, "dave-jwt-dave", secret, func() error {
		if string(secret.Data[slinkyv1beta1.TokenKey]) == first {
			return errors.New("still the first token")
		}
		return signedBy(secret, key)
	})
}

// To enable renewal is what kubectl slurm doctor advises for a token that has expired.
func TestTokenIsRenewedAfterRefreshWasEnabled(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	key := bytes.Repeat([]byte{1}, 32)
	token := newToken("erin")
	token.Spec.Refresh = new(false)
	world.create(t,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"},
			Data: map[string][]byte{"jwt_hs256.key": key}}, token)
	secret := &corev1.Secret{}
	world.eventually(t, "erin-jwt-erin", secret, func() error { return signedBy(secret, key) })
	world.patch(t, token, `{"spec":{"refresh":true}}`)
	world.eventually(t, "erin-jwt-erin", secret, func() error {
		if secret.Immutable != nil && *secret.Immutable {
			return errors.New("the Secret is still immutable")
		}
		return signedBy(secret, key)
	})
	world.eventually(t, "erin", token, func() error {
		return condition(token, token.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionTrue,
			slinkyv1beta1.ReasonIssued)
	})
}

// A policy is enforced by the operator, because the webhook may be off: the Token of a user that it forbids has no
// Secret, whatever the Token calls the user and the key.
func TestTokenForRootIsRefusedByPolicy(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	key := bytes.Repeat([]byte{1}, 32)
	keySecret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"jwt_hs256.key": key}}
	}
	controller := controllerWithKey()
	controller.Spec.TokenPolicy = &slinkyv1beta1.TokenPolicy{DeniedUsers: []slinkyv1beta1.PolicyUser{"root", "slurm"}}
	copied := newToken("root-by-a-copy-of-the-key")
	copied.Spec.Username, copied.Spec.JWTKeyRef.Name = "root", "copy"
	uid := newToken("root-by-uid")
	uid.Spec.Username, uid.Spec.SecretRef = "0", &slinkyv1beta1.TokenSecret{Name: "uid"}
	world.create(t, keySecret("key"), keySecret("copy"), controller, newToken("root"), copied, uid, newToken("alice"))
	for _, name := range []string{"root", copied.Name, uid.Name} {
		token := &slinkyv1beta1.Token{}
		world.eventually(t, name, token, func() error {
			return condition(token, token.Status.Conditions, slinkyv1beta1.ConditionDegraded, metav1.ConditionTrue,
				slinkyv1beta1.ReasonForbiddenByPolicy)
		})
	}
	for _, name := range []string{"root-jwt-root", copied.Name + "-jwt-root", "uid"} {
		world.gone(t, name, &corev1.Secret{})
	}
	secret := &corev1.Secret{}
	world.eventually(t, "alice-jwt-alice", secret, func() error { return signedBy(secret, key) })
}

// A stricter policy removes the Secrets that it forbids, and a looser one restores them.
func TestTokensFollowTheirPolicy(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	key := bytes.Repeat([]byte{1}, 32)
	controller := controllerWithKey()
	token := newToken("bob")
	world.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"},
		Data: map[string][]byte{"jwt_hs256.key": key}}, controller, token)
	secret := &corev1.Secret{}
	world.eventually(t, "bob-jwt-bob", secret, func() error { return signedBy(secret, key) })

	world.patch(t, controller, `{"spec":{"tokenPolicy":{"maxLifetime":"30m"}}}`)
	world.gone(t, "bob-jwt-bob", &corev1.Secret{})
	world.eventually(t, "bob", token, func() error {
		if token.Status.ExpiresAt != nil {
			return fmt.Errorf("expires at %v", token.Status.ExpiresAt)
		}
		return condition(token, token.Status.Conditions, slinkyv1beta1.ConditionAvailable, metav1.ConditionFalse,
			slinkyv1beta1.ReasonNotServing)
	})

	world.patch(t, controller, `{"spec":{"tokenPolicy":{"maxLifetime":"1h"}}}`)
	world.eventually(t, "bob-jwt-bob", secret, func() error { return signedBy(secret, key) })
}

// controllerWithKey returns a Controller with the key of newToken.
func controllerWithKey() *slinkyv1beta1.Controller {
	return &slinkyv1beta1.Controller{
		ObjectMeta: metav1.ObjectMeta{Name: "slurm"},
		Spec: slinkyv1beta1.ControllerSpec{
			JWTKeyRef: &slinkyv1beta1.SecretKeyReference{Name: "key", Key: "jwt_hs256.key"},
		},
	}
}

func newToken(name string) *slinkyv1beta1.Token {
	return &slinkyv1beta1.Token{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: slinkyv1beta1.TokenSpec{
		Username: name, Lifetime: metav1.Duration{Duration: time.Hour},
		JWTKeyRef: &slinkyv1beta1.SecretKeyReference{Name: "key", Key: "jwt_hs256.key"},
	}}
}

func signedBy(secret *corev1.Secret, key []byte) error {
	_, err := jwt.Parse(key, string(secret.Data[slinkyv1beta1.TokenKey]))
	return err
}
