package accounting

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

func TestChildren(t *testing.T) {
	tests := map[string]func(*scope){
		"smallest": func(*scope) {},
		"full": func(s *scope) {
			spec := &s.accounting.Spec
			spec.JWKSKeyRef = &slinkyv1beta1.ConfigMapKeyReference{Name: "jwks", Key: "keys"}
			s.jwks = `{"keys": []}`
			spec.ExtraConf = "PurgeJobAfter=12months\nMessageTimeout=30\n"
			spec.SlurmUser = slinkyv1beta1.SlurmUser{UID: 401, GID: 402}
			spec.Slurmdbd.Raw = []byte(`{"image": "example.com/slurmdbd:1", "imagePullPolicy": "Always"}`)
			spec.Template.Spec.Raw = []byte(`{"nodeSelector": {"disk": "fast"}}`)
			spec.Service.Port = 16819
			spec.Service.Metadata.Annotations = map[string]string{"example.com/mine": "yes"}
		},
	}
	tests["tls"] = withTLS
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			change(scope)
			plan := decide(scope)
			if plan.children == nil {
				t.Fatalf("no children: %+v", plan.verdict)
			}
			// As text, so that the golden file is readable.
			plan.children.secret.StringData = map[string]string{}
			for file, content := range plan.children.secret.Data {
				plan.children.secret.StringData[file] = string(content)
			}
			plan.children.secret.Data = nil
			golden.YAML(t, name+".yaml", plan.children.secret, plan.children.service, plan.children.statefulSet)
		})
	}
}

func TestPodIsReplacedWhenStartupConfigChanges(t *testing.T) {
	tests := map[string]struct {
		change   func(*scope)
		replaced bool
	}{
		"for another password": {func(s *scope) { s.password = "another" }, true},
		"for another slurm key": {func(s *scope) {
			s.slurmKey.Data[slinkyv1beta1.SlurmKeyFile] = bytes.Repeat([]byte{9}, 1024)
		}, true},
		"for another JWT key": {
			func(s *scope) { s.jwtKey.Data[slinkyv1beta1.JWTKeyFile] = bytes.Repeat([]byte{9}, 32) }, true},
		"for other configuration": {
			func(s *scope) { s.accounting.Spec.ExtraConf = "PurgeJobAfter=12months" }, true},
		"for another database": {func(s *scope) { s.accounting.Spec.StorageConfig.Database = "another" },
			true},
		"for TLS":                             {withTLS, true},
		"not for another port of the Service": {func(s *scope) { s.accounting.Spec.Service.Port = 16819 }, false},
	}
	before := digestOf(t, newScope())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			test.change(scope)
			if replaced := digestOf(t, scope) != before; replaced != test.replaced {
				t.Errorf("pod is replaced: %v", replaced)
			}
		})
	}
}

func digestOf(t *testing.T, scope *scope) string {
	t.Helper()
	plan := decide(scope)
	if plan.children == nil {
		t.Fatalf("no children: %+v", plan.verdict)
	}
	return plan.children.statefulSet.Spec.Template.Annotations[naming.AnnotationConfiguration]
}

// A renewed certificate must reach slurmdbd, which reads it when it connects.
func TestPodIsReplacedWhenCertificatesChange(t *testing.T) {
	scope := newScope()
	withTLS(scope)
	before := digestOf(t, scope)
	scope.tls[caFile] = bytes.Repeat(scope.tls[caFile], 2)
	if digestOf(t, scope) == before {
		t.Error("the pod is not replaced")
	}
}

// newCertificate returns a certificate and its key in PEM, always the same.
func newCertificate() (certificate, key []byte) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		panic(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// withTLS adds TLS with a client certificate.
func withTLS(s *scope) {
	s.accounting.Spec.StorageConfig.TLS = &slinkyv1beta1.StorageTLS{
		CAConfigMapRef:       &slinkyv1beta1.ConfigMapKeyReference{Name: "database-ca", Key: "ca.crt"},
		ClientCertificateRef: &slinkyv1beta1.ObjectReference{Name: "database-client"},
	}
	certificate, key := newCertificate()
	s.tls = map[string][]byte{caFile: certificate, certificateFile: certificate, keyFile: key}
}

func TestPasswordIsOnlyInSecrets(t *testing.T) {
	scope := newScope()
	plan := decide(scope)
	public, err := json.Marshal([]any{plan.children.statefulSet, plan.children.service})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(public), scope.password) {
		t.Errorf("the password is in %s", public)
	}
	// The digest of the same password differs with another key, so the password cannot be guessed from it.
	other := newScope()
	other.slurmKey.Data[slinkyv1beta1.SlurmKeyFile] = []byte("another key")
	if digestOf(t, scope) == digestOf(t, other) {
		t.Error("the digest does not depend on the key")
	}
}

func TestBlockedReconcile(t *testing.T) {
	tests := map[string]struct {
		change          func(*scope)
		reason, message string
	}{
		"referenced key is missing": {func(s *scope) {
			s.accounting.Spec.SlurmKeyRef = &slinkyv1beta1.SecretKeyReference{Name: "mine", Key: "k"}
			s.keys, s.slurmKey = naming.AccountingKeys(s.accounting), nil
		}, slinkyv1beta1.ReasonReferenceNotFound,
			"Secret mine, which spec.slurmKeyRef names, does not exist or has no value under k; create it"},
		"CA of the database is missing": {func(s *scope) {
			withTLS(s)
			s.tls[caFile] = nil
		}, slinkyv1beta1.ReasonReferenceNotFound, "ConfigMap database-ca, which " +
			"spec.storageConfig.tls.caConfigMapRef names, does not exist or has no value under ca.crt; create it"},
		"key of the client certificate is missing": {func(s *scope) {
			withTLS(s)
			s.tls[keyFile] = nil
		}, slinkyv1beta1.ReasonReferenceNotFound, "Secret database-client, which " +
			"spec.storageConfig.tls.clientCertificateRef names, does not exist or has no value under tls.key; create it"},
		"CA of the database has no certificate": {func(s *scope) {
			withTLS(s)
			s.tls[caFile] = []byte("garbage")
		}, slinkyv1beta1.ReasonInvalidSpec, "spec.storageConfig.tls.caConfigMapRef: there is no certificate in it"},
		"client certificate and key do not match": {func(s *scope) {
			withTLS(s)
			s.tls[keyFile] = []byte("garbage")
		}, slinkyv1beta1.ReasonInvalidSpec, "tls.crt and tls.key are not a certificate and its key"},
		"lost key of running daemons is not generated again": {func(s *scope) {
			s.slurmKey, s.statefulSet = nil, &appsv1.StatefulSet{}
		}, slinkyv1beta1.ReasonReferenceNotFound, "Secret slurm-auth-slurm"},
		"existing Secret without the key is not changed": {func(s *scope) {
			s.jwtKey.Data = nil
		}, slinkyv1beta1.ReasonReferenceNotFound, "spec.jwtKeyRef"},
		"password is missing": {func(s *scope) { s.password = "" }, slinkyv1beta1.ReasonReferenceNotFound,
			"spec.storageConfig.passwordKeyRef"},
		"key set is missing": {func(s *scope) {
			s.accounting.Spec.JWKSKeyRef = &slinkyv1beta1.ConfigMapKeyReference{Name: "jwks", Key: "keys"}
		}, slinkyv1beta1.ReasonReferenceNotFound, "ConfigMap jwks, which spec.jwksKeyRef names"},
		"message names the invalid line": {func(s *scope) {
			s.accounting.Spec.ExtraConf = "PurgeJobAfter=12months\nStoragePass=open"
		}, slinkyv1beta1.ReasonInvalidSpec, "line 2: StoragePass"},
		"password that slurmdbd.conf cannot hold": {func(s *scope) { s.password += "\n" },
			slinkyv1beta1.ReasonInvalidSpec, "StoragePass"},
		"message names the field that cannot be merged": {func(s *scope) {
			s.accounting.Spec.Slurmdbd.Raw = []byte(`{"env": 1}`)
		}, slinkyv1beta1.ReasonInvalidSpec, "spec.slurmdbd"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			test.change(scope)
			plan := decide(scope)
			if plan.children != nil || plan.remove || plan.keys != nil || plan.verdict.Reason != test.reason ||
				!strings.Contains(plan.verdict.Message, test.message) {
				t.Errorf("got plan %+v", plan)
			}
			if strings.Contains(plan.verdict.Message, "canary") {
				t.Error("the message contains the password")
			}
		})
	}
}

func TestMissingKeysAreGenerated(t *testing.T) {
	scope := newScope()
	scope.slurmKey, scope.jwtKey = nil, nil
	plan := decide(scope)
	if plan.children != nil || len(plan.keys) != 2 || plan.keys[0].Name != "slurm-auth-slurm" ||
		plan.keys[1].Name != "slurm-auth-jwths256" {
		t.Errorf("got plan %+v", plan)
	}
}

func TestExternalAccountingHasNoWorkload(t *testing.T) {
	scope := newScope()
	scope.slurmKey = nil
	scope.accounting.Spec.External = true
	scope.accounting.Spec.ExternalConfig = &slinkyv1beta1.ExternalConfig{Host: "dbd.example", Port: 6819}
	plan := decide(scope)
	if !plan.remove || plan.children != nil || plan.keys != nil || !plan.verdict.Ready() ||
		plan.verdict.Reason != slinkyv1beta1.ReasonExternal {
		t.Errorf("got plan %+v", plan)
	}
}

func TestSlurmdbdRunsAsTheUserOfItsImage(t *testing.T) {
	failed := func(container, message string) corev1.Pod {
		return corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
			Name: container, LastTerminationState: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{Message: message},
			},
		}}}}
	}
	recorded := &slinkyv1beta1.SlurmUser{UID: 7, GID: 8}
	for name, test := range map[string]struct {
		pod      corev1.Pod
		given    int64
		recorded *slinkyv1beta1.SlurmUser
		want     slinkyv1beta1.SlurmUser
	}{
		"that of our images by default": {want: slinkyv1beta1.SlurmUser{UID: 64030, GID: 64030}},
		"the one that a pod has found": {
			pod: failed(configurationName, "401:402\n"), recorded: recorded, want: slinkyv1beta1.SlurmUser{UID: 401, GID: 402},
		},
		"the one that was found before": {recorded: recorded, want: *recorded},
		"the given one": {
			pod: failed(configurationName, "401:402\n"), given: 500, want: slinkyv1beta1.SlurmUser{UID: 500, GID: 500},
		},
		"not what another container says": {pod: failed("other", "401:402"), recorded: recorded, want: *recorded},
		"not root":                        {pod: failed(configurationName, "0:0"), recorded: recorded, want: *recorded},
		"not another failure": {
			pod: failed(configurationName, "no space left"), recorded: recorded, want: *recorded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			scope.pods = []corev1.Pod{test.pod}
			scope.accounting.Spec.SlurmUser = slinkyv1beta1.SlurmUser{UID: test.given}
			scope.accounting.Status.SlurmUser = test.recorded
			if got := scope.slurmUser(); got != test.want {
				t.Errorf("user %+v, want %+v", got, test.want)
			}
		})
	}
}

func newScope() *scope {
	accounting := &slinkyv1beta1.Accounting{
		ObjectMeta: metav1.ObjectMeta{Name: "slurm", Namespace: "hpc"},
		Spec: slinkyv1beta1.AccountingSpec{
			StorageConfig: &slinkyv1beta1.StorageConfig{
				Host: "mariadb", Port: 3306, Database: "slurm_acct_db", Username: "slurm",
				PasswordKeyRef: &slinkyv1beta1.SecretKeyReference{Name: "database", Key: "password"},
			},
			Service:   slinkyv1beta1.AccountingService{Port: 6819},
			SlurmUser: slinkyv1beta1.SlurmUser{UID: 64030, GID: 64030},
		},
	}
	return &scope{
		accounting: accounting, keys: naming.AccountingKeys(accounting), password: "canary #1",
		images: naming.Images{
			Repository: "slurm-operator", Tag: "26.05", Operator: "slurm-operator/slurm-operator:dev",
		},
		slurmKey: &corev1.Secret{Data: map[string][]byte{slinkyv1beta1.SlurmKeyFile: bytes.Repeat([]byte{1}, 1024)}},
		jwtKey:   &corev1.Secret{Data: map[string][]byte{slinkyv1beta1.JWTKeyFile: bytes.Repeat([]byte{2}, 32)}},
	}
}
