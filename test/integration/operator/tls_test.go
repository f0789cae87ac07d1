//go:build integration

package operator_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/certificate"
)

// The operator generates a certificate, publishes what clients trust, and uses a new certificate without a restart.
func TestOperatorFollowsTheCertificateOfSlurmrestd(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	restAPI, secret, trust := newRestAPI(), &corev1.Secret{}, &corev1.ConfigMap{}
	world.get(t, "slurm", restAPI)
	world.get(t, "slurm-restapi-tls", secret)
	world.get(t, "slurm-restapi-ca", trust)
	if !metav1.IsControlledBy(secret, restAPI) || !metav1.IsControlledBy(trust, restAPI) {
		t.Error("the certificate would survive deletion of the RestApi")
	}
	if trust.Data["ca.crt"] != string(secret.Data["tls.crt"]) || secret.Type != corev1.SecretTypeTLS {
		t.Error("clients do not trust what is served")
	}
	if left := time.Until(restAPI.Status.CertificateExpiresAt.Time); left < 364*24*time.Hour {
		t.Errorf("the certificate expires in %s", left)
	}
	world.waitUntilIdle(t)

	t.Run("a deleted certificate is generated again", func(t *testing.T) {
		before := string(secret.Data["tls.crt"])
		if err := world.Delete(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		world.eventually(t, "slurm-restapi-tls", secret, func() error {
			if string(secret.Data["tls.crt"]) == before {
				return errors.New("not yet")
			}
			return nil
		})
		world.usesCertificate(t, controller, "slurm-restapi."+world.namespace+".svc", string(secret.Data["tls.crt"]))
		world.waitUntilIdle(t)
	})
	t.Run("a given certificate is used", func(t *testing.T) {
		world.patch(t, restAPI, `{"spec": {"tls": {"certificateRef": {"name": "mine"}}}}`)
		world.eventually(t, "slurm", restAPI, func() error {
			return condition(restAPI, restAPI.Status.Conditions, slinkyv1beta1.ConditionDegraded, metav1.ConditionTrue,
				slinkyv1beta1.ReasonReferenceNotFound)
		})
		world.eventually(t, "slurm", controller, func() error {
			return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable,
				metav1.ConditionFalse, slinkyv1beta1.ReasonReferenceNotFound)
		})
		mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Type: corev1.SecretTypeTLS,
			Data: newCertificate(t, "slurm.example.com")}
		world.create(t, mine)
		world.usesCertificate(t, controller, "slurm.example.com", string(mine.Data["tls.crt"]))

		renewed := newCertificate(t, "slurm.example.com")
		mine.Data = renewed
		if err := world.Update(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		world.usesCertificate(t, controller, "slurm.example.com", string(renewed["tls.crt"]))
	})
	t.Run("a damaged certificate is reported", func(t *testing.T) {
		mine := &corev1.Secret{}
		world.get(t, "mine", mine)
		mine.Data["tls.key"] = newCertificate(t, "slurm.example.com")["tls.key"]
		if err := world.Update(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		world.eventually(t, "slurm", controller, func() error {
			return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable,
				metav1.ConditionFalse, slinkyv1beta1.ReasonCertificateInvalid)
		})
	})
}

// I23: a server at the cluster IP of slurmrestd that has another certificate, even for the same name, gets no request.
func TestTokensAreSentOnlyToTheCertificateOfTheRestApi(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	requests := func() int { return len(world.slurm.Requests()) }
	forged, err := certificate.ReadSet(newCertificate(t, "slurm-restapi."+world.namespace+".svc")).Current.Load()
	if err != nil {
		t.Fatal(err)
	}
	world.impostor.Store(forged)
	// With other certificates to trust, the session is opened again; its connections are not reused.
	secret := &corev1.Secret{}
	world.get(t, "slurm-restapi-tls", secret)
	if err := world.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable,
			metav1.ConditionFalse, slinkyv1beta1.ReasonEndpointNotVerified)
	})
	before := requests()
	world.waitUntilIdle(t)
	if now := requests(); now != before {
		t.Errorf("the server got %d requests", now-before)
	}
	world.impostor.Store(nil)
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable,
			metav1.ConditionTrue, slinkyv1beta1.ReasonConnected)
	})
}

// newCertificate returns the content of a Secret with a certificate for a name.
func newCertificate(t *testing.T, name string) map[string][]byte {
	t.Helper()
	pair, err := certificate.NewPair([]string{name}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return certificate.Set{Current: pair}.Data()
}

// usesCertificate waits until the operator is connected to a server of this name with this certificate, and clients can
// trust it.
func (w *world) usesCertificate(t *testing.T, controller *slinkyv1beta1.Controller, name, certificate string) {
	t.Helper()
	trust := &corev1.ConfigMap{}
	w.eventually(t, "slurm-restapi-ca", trust, func() error {
		if trust.Data["ca.crt"] != certificate {
			return errors.New("clients trust another certificate")
		}
		return nil
	})
	w.eventually(t, "slurm", controller, func() error {
		dials := w.dials()
		if last := dials[len(dials)-1]; last.TLS.ServerName != name {
			return errors.New("the last connection is to " + last.TLS.ServerName)
		}
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable,
			metav1.ConditionTrue, slinkyv1beta1.ReasonConnected)
	})
}
