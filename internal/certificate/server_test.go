package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// An authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	pem         []byte
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: start, NotAfter: start.Add(10 * lifetime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key}
}

// sign returns a certificate for names that is valid for a lifetime.
func (a authority) sign(t *testing.T, names ...string) Pair {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: names, NotBefore: start, NotAfter: start.Add(lifetime),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

func TestGivenCertificate(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	internal, public, wildcard := ca.sign(t, "other", name), ca.sign(t, "slurm.example.com"), ca.sign(t, "*.example.com")
	selfSigned := makePair(t, "slurm.example.com", start)
	tests := map[string]struct {
		pair Pair
		ca   []byte
		now  time.Time
		// name is the expected server name, and problem a part of the error.
		name, problem string
	}{
		"is verified under the name of the Service":       {pair: internal, ca: ca.pem, name: name},
		"is verified under its own name otherwise":        {pair: public, ca: ca.pem, name: "slurm.example.com"},
		"is verified under a name that a wildcard covers": {pair: wildcard, ca: ca.pem, name: "slurmrestd.example.com"},
		"is trusted itself without a CA":                  {pair: public, name: "slurm.example.com"},
		"is trusted itself if self-signed":                {pair: selfSigned, name: "slurm.example.com"},
		"has another CA":                                  {pair: public, ca: stranger.pem, problem: "unknown authority"},
		"has a CA that is not a certificate":              {pair: public, ca: []byte("x"), problem: "ca.crt"},
		"has no DNS name":                                 {pair: ca.sign(t), ca: ca.pem, problem: "no DNS name"},
		"has another key":                                 {pair: Pair{public.Certificate, internal.Key}, problem: "tls.key"},
		"is missing":                                      {problem: "tls.crt"},
		"has expired": {
			pair: public, now: start.Add(lifetime), problem: "expired at 2030-12-27",
		},
		"is not valid yet": {pair: public, now: start.Add(-day), problem: "not yet valid"},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			if test.now.IsZero() {
				test.now = start.Add(day)
			}
			data := map[string][]byte{"tls.crt": test.pair.Certificate, "tls.key": test.pair.Key, "ca.crt": test.ca}
			got, err := Given(data, name, test.now)
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("error is %v", err)
				}
				return
			}
			if err != nil || got.Name != test.name || !got.Expires.Equal(start.Add(lifetime)) {
				t.Errorf("got %s, expires at %s, error %v", got.Name, got.Expires, err)
			}
			handshake(t, test.pair, got, test.now)
		})
	}
}

// handshake connects as a client that accepts only the server.
func handshake(t *testing.T, served Pair, expected Server, now time.Time) {
	t.Helper()
	settings, err := expected.Client()
	if err != nil {
		t.Fatal(err)
	}
	settings.Time = func() time.Time { return now }
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	go func() {
		_ = tls.Server(far, &tls.Config{Certificates: []tls.Certificate{*load(t, served)}}).HandshakeContext(t.Context())
	}()
	if err := tls.Client(near, settings).HandshakeContext(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRotationStepsAreDueInTime(t *testing.T) {
	held, _, err := year.Advance(Set{}, start)
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		due := year.Due(held)
		if _, changed, _ := year.Advance(held, due.Add(-time.Minute)); changed {
			t.Fatalf("a step was due before %s", due)
		}
		next, changed, err := year.Advance(held, due.Add(time.Minute))
		if err != nil || !changed {
			t.Fatalf("no step at %s: %v", due, err)
		}
		held = next
	}
}

func TestAddedNameKeepsTheFormerCertificateTrusted(t *testing.T) {
	before := makePair(t, name, start)
	got, changed, err := Schedule{Names: []string{name, "slurm.example.com"}, Lifetime: lifetime}.Advance(
		Set{Current: before}, start.Add(day))
	if err != nil || !changed {
		t.Fatalf("changed: %t, error %v", changed, err)
	}
	if names := load(t, got.Current).Leaf.DNSNames; !slices.Equal(names, []string{name, "slurm.example.com"}) {
		t.Errorf("the certificate is for %v", names)
	}
	trust(t, got.Bundle(start.Add(day)), load(t, before).Leaf, start.Add(day))
}

// Any user who may create Secrets can create one with the name of the operator's.
func TestOnlyOwnOrNamedSecretIsTrusted(t *testing.T) {
	const host = "slurm-restapi.ns.svc"
	pair := makePair(t, host, start)
	restAPI := &slinkyv1beta1.RestApi{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "slurm", UID: "own"}}
	named := restAPI.DeepCopy()
	named.Spec.TLS.CertificateRef = &slinkyv1beta1.ObjectReference{Name: "mine"}
	secret := func(owners ...types.UID) *corev1.Secret {
		secret := &corev1.Secret{Data: Set{Current: pair}.Data()}
		for _, owner := range owners {
			secret.OwnerReferences = []metav1.OwnerReference{
				{Kind: "RestApi", Name: "slurm", UID: owner, Controller: new(true)},
			}
		}
		return secret
	}
	damaged := secret("own")
	damaged.Data["tls.crt"] = []byte("x")
	for what, test := range map[string]struct {
		restAPI *slinkyv1beta1.RestApi
		secret  *corev1.Secret
		reason  string // empty if it is trusted
		message string
	}{
		"its own":                 {restAPI: restAPI, secret: secret("own")},
		"one that the spec names": {restAPI: named, secret: secret()},
		"one without owner": {
			restAPI, secret(), slinkyv1beta1.ReasonCertificateInvalid, "slurm-restapi-tls exists",
		},
		"one of another RestApi":      {restAPI, secret("b"), slinkyv1beta1.ReasonCertificateInvalid, "not owned by"},
		"none yet":                    {restAPI, nil, slinkyv1beta1.ReasonConnecting, "slurm-restapi-tls"},
		"none that the spec names":    {named, nil, slinkyv1beta1.ReasonReferenceNotFound, "Secret mine"},
		"a damaged one":               {restAPI, damaged, slinkyv1beta1.ReasonCertificateInvalid, "replaces it"},
		"a damaged one that is named": {named, damaged, slinkyv1beta1.ReasonCertificateInvalid, "correct the Secret"},
		"its own, while one is named": {restAPI: named, secret: secret("own")},
	} {
		t.Run(what, func(t *testing.T) {
			got, problem := OfRestAPI(test.restAPI, test.secret, start.Add(day))
			switch {
			case test.reason == "" && (problem != nil || got.Name != host || got.Bundle == ""):
				t.Errorf("got %+v, problem %v", got, problem)
			case test.reason != "" && (problem == nil || problem.Reason != test.reason ||
				!strings.Contains(problem.Message, test.message)):
				t.Errorf("problem is %v", problem)
			}
		})
	}
}
