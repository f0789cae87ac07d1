package loginset

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/images/slurm"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

var testImages = naming.Images{Repository: "slurm-operator", Tag: "26.05"}

// smallest returns the scope of a LoginSet with only defaults.
func smallest() *scope {
	return &scope{
		set: &slinkyv1beta1.LoginSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "login"},
			Spec: slinkyv1beta1.LoginSetSpec{
				ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}, Replicas: new(int32(1)),
				Service: slinkyv1beta1.LoginSetService{Port: 22},
			},
		},
		controller: &slinkyv1beta1.Controller{
			ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "slurm"},
			Spec:       slinkyv1beta1.ControllerSpec{SlurmUser: slinkyv1beta1.SlurmUser{UID: 64030, GID: 64030}},
		},
		clusterDomain: "cluster.local",
		slurmKey:      []byte("slurm's key"),
		hostKeys: &corev1.Secret{Data: map[string][]byte{
			"ssh_host_rsa_key": []byte("rsa"), "ssh_host_rsa_key.pub": []byte("public"),
			"ssh_host_ed25519_key": []byte("ed25519"), "notes": []byte("mine"),
		}},
	}
}

// fullest returns the scope of a LoginSet that uses every field, in a cluster with backups.
func fullest() *scope {
	scope := smallest()
	scope.sssdConf = []byte("[sssd]")
	scope.controller.Spec.HA = slinkyv1beta1.ControllerHA{Enabled: true, Backups: 1}
	scope.controller.Spec.SlurmUser = slinkyv1beta1.SlurmUser{UID: 401, GID: 402}
	scope.controller.Spec.SlurmKeyRef = &slinkyv1beta1.SecretKeyReference{Name: "keys", Key: "shared"}
	fragment := func(raw string) slinkyv1beta1.Fragment { return slinkyv1beta1.Fragment{Raw: []byte(raw)} }
	spec := &scope.set.Spec
	spec.Replicas = new(int32(3))
	spec.Login.Fragment = fragment(
		`{"image":"site/login:7","resources":{"limits":{"memory":"4Gi"}},"volumeMounts":[{"name":"home","mountPath":"/home"}]}`)
	spec.Initconf.Fragment = fragment(`{"resources":{"limits":{"memory":"64Mi"}}}`)
	spec.Template = slinkyv1beta1.PodTemplate{
		Metadata: slinkyv1beta1.Metadata{
			Labels:      map[string]slinkyv1beta1.LabelValue{"team": "hpc"},
			Annotations: map[string]string{"example.com/a": "b"},
		},
		Spec: slinkyv1beta1.PodSpecFragment{
			Fragment: fragment(
				`{"terminationGracePeriodSeconds":3600,"dnsConfig":{"nameservers":["10.0.0.10"],` +
					`"searches":["example.com"]},"volumes":[{"name":"home","persistentVolumeClaim":{"claimName":"home"}}]}`)},
	}
	spec.RootSSHAuthorizedKeys = "ssh-ed25519 AAAA admin\n"
	spec.ExtraSshdConfig = "PrintMotd yes\nMatch Group students\n    X11Forwarding no\n"
	spec.SSSDConfRef = &slinkyv1beta1.SecretKeyReference{Name: "sssd", Key: "conf"}
	spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	spec.Service = slinkyv1beta1.LoginSetService{
		Port: 2222,
		ServiceTemplate: slinkyv1beta1.ServiceTemplate{
			Metadata: slinkyv1beta1.Metadata{Annotations: map[string]string{"example.com/dns": "login.example.com"}},
			Spec: slinkyv1beta1.ServiceSpecFragment{
				Fragment: fragment(`{"type":"LoadBalancer","externalTrafficPolicy":"Local"}`),
			},
			NodePort: 30022,
		},
	}
	return scope
}

func TestLoginPodsResolveSlurmNodes(t *testing.T) {
	const domain = "slurm-workers.hpc.svc.cluster.local"
	full := slices.Repeat([]string{"example.com"}, 32)
	for name, test := range map[string]struct {
		domain      string
		given, want []string
	}{
		"without a search list":           {"cluster.local", nil, []string{domain}},
		"after the user's search domains": {"cluster.local", []string{"a"}, []string{"a", domain}},
		"once":                            {"cluster.local", []string{domain}, []string{domain}},
		"not with a full search list":     {"cluster.local", full, full},
		"not without a known domain":      {"", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			scope, spec := smallest(), &corev1.PodSpec{DNSConfig: &corev1.PodDNSConfig{Searches: test.given}}
			scope.clusterDomain = test.domain
			resolveNodes(scope, spec)
			if diff := cmp.Diff(test.want, spec.DNSConfig.Searches); diff != "" {
				t.Errorf("the search list differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChildren(t *testing.T) {
	for name, scope := range map[string]*scope{"smallest": smallest(), "fullest": fullest()} {
		t.Run(name, func(t *testing.T) {
			children, err := build(scope, testImages)
			if err != nil {
				t.Fatal(err)
			}
			if children.configuration.Data[startFile] != slurm.Login {
				t.Error("the pods have another script than the image")
			}
			children.configuration.Data[startFile] = "…"
			golden.Compare(t, name+".yaml", toYAML(t, children))
		})
	}
}

func TestInvalidFragmentNamesTheField(t *testing.T) {
	tests := map[string]func(*slinkyv1beta1.LoginSetSpec){
		"spec.login":         func(s *slinkyv1beta1.LoginSetSpec) { s.Login.Raw = []byte(`{"image":["two"]}`) },
		"spec.initconf":      func(s *slinkyv1beta1.LoginSetSpec) { s.Initconf.Raw = []byte(`{"env":"none"}`) },
		"spec.template.spec": func(s *slinkyv1beta1.LoginSetSpec) { s.Template.Spec.Raw = []byte(`{"volumes":{}}`) },
		"spec.service.spec":  func(s *slinkyv1beta1.LoginSetSpec) { s.Service.Spec.Raw = []byte(`{"ports":1}`) },
	}
	for field, mistaken := range tests {
		t.Run(field, func(t *testing.T) {
			scope := smallest()
			mistaken(&scope.set.Spec)
			_, err := build(scope, naming.Images{})
			verdict, refused := refusal(err)
			if !refused || verdict.Reason != slinkyv1beta1.ReasonInvalidSpec ||
				!strings.Contains(verdict.Message, field+":") {
				t.Errorf("got verdict %+v", verdict)
			}
		})
	}
}

// toYAML returns the children as one file.
func toYAML(t *testing.T, children desired) string {
	t.Helper()
	var documents []string
	for _, child := range []any{children.configuration, children.hosts, children.service, children.deployment,
		children.budget} {
		document, err := yaml.Marshal(child)
		if err != nil {
			t.Fatal(err)
		}
		if string(document) != "null\n" {
			documents = append(documents, string(document))
		}
	}
	return strings.Join(documents, "---\n")
}
