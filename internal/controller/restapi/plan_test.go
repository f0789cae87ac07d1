package restapi

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/certificate"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

// start is when the tests take place.
var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

const configuration = `ClusterName=slurm
SlurmctldHost=slurm-controller-0
SlurmctldPort=6817
SlurmUser=slurm
StateSaveLocation=/var/spool/slurmctld
AuthType=auth/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt_hs256.key
MaxNodeCount=1024
SlurmctldParameters=enable_configless,config_hash=1
`

const accounting = "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=slurm-accounting\nAccountingStoragePort=6819\n"

func TestChildren(t *testing.T) {
	tests := map[string]struct {
		configuration string
		change        func(*slinkyv1beta1.RestApiSpec)
	}{
		"smallest": {configuration: configuration},
		"full": {configuration: configuration + accounting, change: func(spec *slinkyv1beta1.RestApiSpec) {
			spec.Replicas = new(int32(3))
			spec.Slurmrestd.Raw = []byte(
				`{"image": "example.com/slurmrestd:1", "env": [{"name": "SLURMRESTD_JSON", "value": "pretty"}]}`)
			spec.Template.Spec.Raw = []byte(
				`{"priorityClassName": "high", "containers": [{"name": "proxy", "image": "example.com/proxy:1"}]}`)
			spec.Template.Metadata.Labels = map[string]slinkyv1beta1.LabelValue{"team": "hpc"}
			spec.Service.Port = 80
			spec.Service.Spec.Raw = []byte(`{"type": "LoadBalancer"}`)
			spec.TLS.PlainHTTP = slinkyv1beta1.PlainHTTPAllowed
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scope := newScope(test.configuration)
			if test.change != nil {
				test.change(&scope.restAPI.Spec)
			}
			plan := decide(scope)
			if plan.children == nil {
				t.Fatalf("no children: %+v", plan.verdict)
			}
			scrub(t, plan.children)
			children := []any{
				plan.children.configMap, plan.children.trust, plan.children.service, plan.children.deployment,
			}
			if plan.children.certificate != nil {
				children = append(children, plan.children.certificate)
			}
			if plan.children.budget != nil {
				children = append(children, plan.children.budget)
			}
			golden.YAML(t, name+".yaml", children...)
		})
	}
}

// scrub replaces certificates, which are random, by their keys in the Secret and their number in the ConfigMap.
func scrub(t *testing.T, children *children) {
	t.Helper()
	if children.certificate != nil {
		for key := range children.certificate.Data {
			children.certificate.Data[key] = []byte(key)
		}
	}
	trusted := strings.Count(children.trust.Data[trustKey], "BEGIN CERTIFICATE")
	children.trust.Data[trustKey] = fmt.Sprintf("%d certificates", trusted)
}

func TestPodsAreReplacedOnlyForRelevantConfiguration(t *testing.T) {
	tests := map[string]struct {
		configuration string
		replaced      bool
	}{
		"not for a partition": {configuration + "PartitionName=debug Nodes=ALL\n", false},
		"not for a node set":  {configuration + "NodeSet=gpu Feature=gpu\n", false},
		"not for more nodes": {
			strings.Replace(configuration, "MaxNodeCount=1024", "MaxNodeCount=2048", 1), false,
		},
		"not for another hash":        {strings.Replace(configuration, "config_hash=1", "config_hash=2", 1), false},
		"for another slurmctld":       {configuration + "SlurmctldHost=slurm-controller-1\n", true},
		"for accounting":              {configuration + accounting, true},
		"for another message timeout": {configuration + "MessageTimeout=60\n", true},
	}
	before := hash(t, configuration)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if replaced := hash(t, test.configuration) != before; replaced != test.replaced {
				t.Errorf("pods are replaced: %v", replaced)
			}
		})
	}
}

func hash(t *testing.T, configuration string) string {
	t.Helper()
	plan := decide(newScope(configuration))
	if plan.children == nil {
		t.Fatalf("no children: %+v", plan.verdict)
	}
	return plan.children.deployment.Spec.Template.Annotations[naming.AnnotationConfiguration]
}

func TestBlockedReconcile(t *testing.T) {
	tests := map[string]struct {
		change          func(*scope)
		reason, message string
	}{
		"Controller is missing": {func(s *scope) { s.controller = nil }, slinkyv1beta1.ReasonControllerNotFound,
			"spec.controllerRef"},
		"waits for the Controller's configuration": {
			func(s *scope) { s.configuration = "" }, slinkyv1beta1.ReasonControllerNotReady, "no configuration yet",
		},
		"waits for a damaged configuration to be repaired": {
			func(s *scope) { s.configuration = "garbage" }, slinkyv1beta1.ReasonControllerNotReady, "line 1",
		},
		"waits for the named certificate": {
			func(s *scope) { s.restAPI.Spec.TLS.CertificateRef = &slinkyv1beta1.ObjectReference{Name: "mine"} },
			slinkyv1beta1.ReasonReferenceNotFound, "Secret mine, which spec.tls.certificateRef names",
		},
		"named certificate has no key": {
			func(s *scope) {
				s.restAPI.Spec.TLS.CertificateRef = &slinkyv1beta1.ObjectReference{Name: "mine"}
				s.certificate = &corev1.Secret{}
			},
			slinkyv1beta1.ReasonCertificateInvalid, "tls.key",
		},
		"Secret of another user has the name of the operator's": {
			func(s *scope) { s.certificate = &corev1.Secret{} },
			slinkyv1beta1.ReasonCertificateInvalid, "not owned by RestApi slurm",
		},
		"message names the field that cannot be merged": {
			func(s *scope) { s.restAPI.Spec.Slurmrestd.Raw = []byte(`{"env": 1}`) }, slinkyv1beta1.ReasonInvalidSpec,
			"spec.slurmrestd",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scope := newScope(configuration)
			test.change(scope)
			plan := decide(scope)
			if plan.children != nil || plan.verdict.Reason != test.reason ||
				!strings.Contains(plan.verdict.Message, test.message) {
				t.Errorf("children %v, verdict %+v", plan.children, plan.verdict)
			}
		})
	}
}

// ownCertificate returns the operator's Secret with what a plan keeps in it.
func ownCertificate(scope *scope, plan plan) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{UID: scope.restAPI.UID, Controller: new(true)},
		}},
		Data: plan.children.certificate.Data,
	}
}

func TestOwnCertificateIsRenewed(t *testing.T) {
	scope := newScope(configuration)
	first := decide(scope)
	served := certificate.ReadSet(first.children.certificate.Data).Current
	loaded, err := served.Load()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{
		"slurm-restapi.hpc.svc", "slurm-restapi", "slurm-restapi.hpc", "slurm-restapi.hpc.svc.cluster.local",
	}; !slices.Equal(loaded.Leaf.DNSNames, want) {
		t.Errorf("the certificate is for %v", loaded.Leaf.DNSNames)
	}
	if !first.certificateExpires.Equal(start.Add(certificateLifetime)) {
		t.Errorf("the certificate expires at %s", first.certificateExpires)
	}

	scope.certificate = ownCertificate(scope, first)
	again := decide(scope)
	if !bytes.Equal(again.children.certificate.Data["tls.crt"], served.Certificate) {
		t.Error("a valid certificate was replaced")
	}
	scope.now = scope.now.Add(again.requeueAfter + time.Minute)
	successor := decide(scope)
	if bundle := successor.children.trust.Data[trustKey]; strings.Count(bundle, "BEGIN") != 2 ||
		!bytes.Equal(successor.children.certificate.Data["tls.crt"], served.Certificate) {
		t.Error("clients do not trust the successor before it is served")
	}
	scope.certificate = ownCertificate(scope, successor)
	scope.now = scope.now.Add(successor.requeueAfter + time.Minute)
	rotated := decide(scope)
	if bytes.Equal(rotated.children.certificate.Data["tls.crt"], served.Certificate) ||
		rotated.children.trust.Data[trustKey] != successor.children.trust.Data[trustKey] {
		t.Error("the successor is not served, or clients trust other certificates")
	}
	if diff := cmp.Diff(first.children.deployment, rotated.children.deployment); diff != "" {
		t.Errorf("pods are replaced for a new certificate: %s", diff)
	}
}

func TestGivenCertificateIsServed(t *testing.T) {
	scope := newScope(configuration)
	pair, err := certificate.NewPair([]string{"slurm.example.com"}, start, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	scope.restAPI.Spec.TLS.CertificateRef = &slinkyv1beta1.ObjectReference{Name: "mine"}
	scope.certificate = &corev1.Secret{Data: map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key}}
	plan := decide(scope)
	if plan.children == nil || plan.children.certificate != nil {
		t.Fatalf("got %+v", plan)
	}
	if plan.children.trust.Data[trustKey] != string(pair.Certificate) || plan.requeueAfter != time.Hour ||
		!plan.certificateExpires.Equal(start.Add(time.Hour)) {
		t.Errorf("requeues after %s, expires at %s", plan.requeueAfter, plan.certificateExpires)
	}
	if mounted := plan.children.deployment.Spec.Template.Spec.Volumes; !slices.ContainsFunc(mounted,
		func(volume applycorev1.VolumeApplyConfiguration) bool {
			return volume.Secret != nil && *volume.Secret.SecretName == "mine"
		}) {
		t.Error("the Secret is not mounted")
	}
	scope.now = start.Add(-time.Hour) // it is not valid yet, and no event says when it is
	if plan := decide(scope); plan.verdict.Reason != slinkyv1beta1.ReasonCertificateInvalid || plan.requeueAfter == 0 {
		t.Errorf("requeues after %s with verdict %+v", plan.requeueAfter, plan.verdict)
	}
	scope.now = start.Add(2 * time.Hour)
	if plan := decide(scope); plan.verdict.Reason != slinkyv1beta1.ReasonCertificateInvalid ||
		!strings.Contains(plan.verdict.Message, "expired") {
		t.Errorf("got verdict %+v", plan.verdict)
	}
}

func TestJudge(t *testing.T) {
	failing := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "slurmrestd", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"},
			},
		}}}}
	old := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "slurm-restapi-a-1", DeletionTimestamp: new(metav1.Now()), OwnerReferences: []metav1.OwnerReference{
			{Kind: "ReplicaSet", Name: "slurm-restapi-a", Controller: new(true)},
		},
	}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	tests := map[string]struct {
		replicas int32
		status   appsv1.DeploymentStatus
		pods     []corev1.Pod
		ready    bool
		reason   string
	}{
		"waits for the Deployment to be observed": {
			1, appsv1.DeploymentStatus{}, nil, false, slinkyv1beta1.ReasonReconciling,
		},
		"waits for pods": {
			2, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 1}, nil,
			false, slinkyv1beta1.ReasonPodsNotReady,
		},
		"waits for pods to be replaced": {
			2, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 1, ReadyReplicas: 2}, nil,
			false, slinkyv1beta1.ReasonReconciling,
		},
		"reports why a pod fails": {
			1, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1}, []corev1.Pod{failing},
			false, slinkyv1beta1.ReasonPodsFailing,
		},
		"reports why there is no pod": {
			1, appsv1.DeploymentStatus{ObservedGeneration: 1, Conditions: []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota",
			}}}, nil, false, slinkyv1beta1.ReasonPodsFailing,
		},
		"is ready when all pods are ready": {
			2, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2}, nil,
			true, slinkyv1beta1.ReasonAsExpected,
		},
		"waits until an old pod has terminated": {
			2, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2},
			[]corev1.Pod{old}, false, slinkyv1beta1.ReasonReconciling,
		},
		"waits until the last pod has terminated": {
			0, appsv1.DeploymentStatus{ObservedGeneration: 1}, []corev1.Pod{old}, false, slinkyv1beta1.ReasonReconciling,
		},
		"is ready when scaled to zero": {
			0, appsv1.DeploymentStatus{ObservedGeneration: 1}, nil, true, slinkyv1beta1.ReasonAsExpected,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			restAPI := newScope("").restAPI
			restAPI.Spec.Replicas = &test.replicas
			deployment := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "slurm-restapi", Generation: 1}, Status: test.status,
			}
			if verdict := judge(restAPI, deployment, test.pods); verdict.Ready() != test.ready ||
				verdict.Reason != test.reason {
				t.Errorf("got verdict %+v", verdict)
			}
		})
	}
}

// A kubelet updates a changed Secret in a pod within a minute and a half, and immediately when the pod changes.
func TestCertificateIsUpdatedInRunningPods(t *testing.T) {
	scope := newScope(configuration)
	first := decide(scope)
	if pod, pending := lacksCertificate(scope, first); !pending || pod != "" {
		t.Errorf("a certificate that is being generated is in the pods: %q", pod)
	}
	scope.certificate = ownCertificate(scope, first)
	next := decide(scope)
	pod := func(touched string, phase corev1.PodPhase) corev1.Pod {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "slurm-restapi-a"}, Status: corev1.PodStatus{Phase: phase}}
		if touched != "" {
			pod.Annotations = map[string]string{annotationCertificate: touched}
		}
		return pod
	}
	for name, test := range map[string]struct {
		pod     corev1.Pod
		pending bool
	}{
		"was touched for the present one": {pod(next.certificateHash, corev1.PodRunning), false},
		"was touched for a former one":    {pod("former", corev1.PodRunning), true},
		"started with the present one":    {pod("", corev1.PodRunning), false},
		"has exited":                      {pod("former", corev1.PodFailed), false},
	} {
		t.Run(name, func(t *testing.T) {
			scope.pods = []corev1.Pod{test.pod}
			if named, pending := lacksCertificate(scope, next); pending != test.pending ||
				pending && named != ", such as slurm-restapi-a" {
				t.Errorf("pending: %t, %q", pending, named)
			}
		})
	}
}

func newScope(configuration string) *scope {
	return &scope{
		restAPI: &slinkyv1beta1.RestApi{
			ObjectMeta: metav1.ObjectMeta{Name: "slurm", Namespace: "hpc"},
			Spec: slinkyv1beta1.RestApiSpec{
				ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"},
				Service:       slinkyv1beta1.RestApiService{Port: 6820},
			},
		},
		image: "slurm-operator/slurmrestd:26.05", helper: "slurm-operator/slurm-operator:1", clusterDomain: "cluster.local",
		now: start, controller: &slinkyv1beta1.Controller{}, configuration: configuration,
	}
}
