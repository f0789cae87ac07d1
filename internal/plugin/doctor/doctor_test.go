package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

var now = time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)

// old is an age after which everything should have happened.
const old = 24 * time.Hour

func object(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(now.Add(-old)),
	}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now.Add(-old)),
	}
}

var isReady = []metav1.Condition{
	condition(slinkyv1beta1.ConditionReady, metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected, ""),
}

// pod returns a ready pod of a daemon.
func pod(daemon naming.Daemon, instance, name string) corev1.Pod {
	meta := object("slurm", name)
	meta.Labels = naming.Labels(daemon, instance)
	return corev1.Pod{
		ObjectMeta: meta,
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: string(daemon)}}},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: string(daemon), Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}},
		},
	}
}

// certificate returns a bundle with a certificate that expires after some time.
func certificate(t *testing.T, after time.Duration) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-365 * old), NotAfter: now.Add(after)}
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: encoded})
}

// current returns the CRDs of this version.
func current() []ResourceType {
	var all []ResourceType
	for plural, kind := range kinds {
		var crd ResourceType
		crd.Metadata.Name = plural + "." + slinkyv1beta1.GroupName
		crd.Spec.Versions = append(crd.Spec.Versions, struct {
			Name   string `json:"name"`
			Schema struct {
				OpenAPIV3Schema schema `json:"openAPIV3Schema"`
			} `json:"schema"`
		}{Name: slinkyv1beta1.SchemeGroupVersion.Version})
		properties := map[string]schema{}
		for _, part := range []string{"Spec", "Status"} {
			field, _ := kind.FieldByName(part)
			fields := map[string]schema{}
			for _, name := range jsonFields(field.Type) {
				fields[name] = schema{}
			}
			properties[strings.ToLower(part)] = schema{fields}
		}
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = properties
		all = append(all, crd)
	}
	return all
}

func known[T any](items ...T) List[T] { return List[T]{Items: items, Known: true} }

// healthy returns a snapshot in which nothing is wrong.
func healthy(t *testing.T) *Snapshot {
	t.Helper()
	meta := object("slurm", "slurm")
	controller := slinkyv1beta1.Controller{ObjectMeta: meta, Spec: slinkyv1beta1.ControllerSpec{
		ExtraConf: "SchedulerType=sched/backfill\nPriorityTpye=priority/multifactor\n",
	}}
	controller.Status.Conditions = append(controller.Status.Conditions, isReady...)
	controller.Status.JobConfinement = slinkyv1beta1.JobConfinementCgroups
	set := slinkyv1beta1.NodeSet{ObjectMeta: object("slurm", "gpu")}
	set.Spec.ControllerRef.Name, set.Spec.Replicas = "slurm", new(int32(1))
	set.Status = slinkyv1beta1.NodeSetStatus{Conditions: isReady, Desired: 1, Replicas: 1}
	login := slinkyv1beta1.LoginSet{ObjectMeta: object("slurm", "login")}
	login.Spec.ControllerRef.Name, login.Status.Conditions = "slurm", isReady
	issued := slinkyv1beta1.Token{ObjectMeta: object("slurm", "exporter")}
	issued.Status.Conditions, issued.Status.ExpiresAt = isReady, new(metav1.NewTime(now.Add(10*time.Minute)))
	worker := pod(naming.Slurmd, "gpu", "gpu-0")
	worker.OwnerReferences = []metav1.OwnerReference{{UID: set.UID, Controller: new(true)}}
	budget := policyv1.PodDisruptionBudget{ObjectMeta: object("slurm", "gpu")}
	budget.Labels, budget.OwnerReferences = naming.Labels(naming.Slurmd, "gpu"), worker.OwnerReferences
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: naming.Selector(naming.Slurmd, "gpu")}
	operator := appsv1.Deployment{ObjectMeta: object("slurm-operator", "slurm-operator")}
	operator.Labels = map[string]string{labelComponent: operatorComponent}
	operator.Spec.Replicas, operator.Status.AvailableReplicas = new(int32(1)), 1
	operator.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{"manager"}}}
	webhook := appsv1.Deployment{ObjectMeta: object("slurm-operator", "slurm-operator-webhook")}
	webhook.Labels, webhook.Spec.Replicas = map[string]string{labelComponent: "webhook"}, new(int32(1))
	lease := coordinationv1.Lease{ObjectMeta: object("slurm-operator", OperatorLease)}
	lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = new(metav1.NewMicroTime(now)), new(int32(15))
	kubelet := coordinationv1.Lease{ObjectMeta: object("kube-node-lease", "node-1")}
	kubelet.Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-5 * time.Second)))
	kubelet.ManagedFields = []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(now.Add(-5 * time.Second)))}}
	return &Snapshot{
		Now: now,
		Objects: kube.Objects{
			Controllers: []slinkyv1beta1.Controller{controller}, NodeSets: []slinkyv1beta1.NodeSet{set},
			LoginSets: []slinkyv1beta1.LoginSet{login}, Tokens: []slinkyv1beta1.Token{issued},
		},
		Pods: known(worker, pod(naming.Login, "login", "login-x"),
			pod(naming.Slurmctld, "slurm", "slurm-controller-0")),
		Claims:         known(claim(corev1.ClaimBound, "standard")),
		Budgets:        known(budget),
		Quotas:         known(quota("4", "10")),
		StorageClasses: known(storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}}),
		Nodes:          known(corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}),
		NodeLeases:     known(kubelet),
		Deployments:    known(operator, webhook), Leases: known(lease),
		Webhooks: known(reviewing(certificate(t, 365*old))),
		Endpoints: known(discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "slurm-operator", Labels: map[string]string{labelService: "slurm-operator-webhook"},
			},
			Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		}),
		ResourceTypes: known(current()...),
		SlurmNodes: map[string][]slurm.Node{"slurm/slurm": {
			{Name: "gpu-0", State: slurm.StateIdle},
			{Name: "gpu-1", State: slurm.StateIdle, Flags: slurm.FlagDrain, Reason: slinkyv1beta1.ReasonPrefix + "scale-in"},
		}},
		Logs: map[string]string{},
	}
}

func reviewing(bundle []byte) admissionv1.ValidatingWebhookConfiguration {
	return admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "slurm-operator-webhook"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			FailurePolicy: new(admissionv1.Ignore),
			Rules: []admissionv1.RuleWithOperations{{
				Rule: admissionv1.Rule{APIGroups: []string{slinkyv1beta1.GroupName}},
			}},
			ClientConfig: admissionv1.WebhookClientConfig{CABundle: bundle, Service: &admissionv1.ServiceReference{
				Namespace: "slurm-operator", Name: "slurm-operator-webhook",
			}},
		}},
	}
}

func claim(phase corev1.PersistentVolumeClaimPhase, class string) corev1.PersistentVolumeClaim {
	is := corev1.PersistentVolumeClaim{ObjectMeta: object("slurm", "slurm-controller-state")}
	is.Labels, is.Status.Phase = naming.Labels(naming.Slurmctld, "slurm"), phase
	if class != "" {
		is.Spec.StorageClassName = &class
	}
	return is
}

func quota(used, hard string) corev1.ResourceQuota {
	is := corev1.ResourceQuota{ObjectMeta: object("slurm", "team")}
	is.Status.Hard = corev1.ResourceList{"pods": resource.MustParse(hard), "requests.storage": resource.MustParse("1")}
	is.Status.Used = corev1.ResourceList{"pods": resource.MustParse(used), "requests.storage": resource.MustParse("1")}
	return is
}

// waiting makes a pod's daemon wait for a reason.
func waiting(pod *corev1.Pod, image, reason, message, ended string) {
	container := &pod.Status.ContainerStatuses[0]
	container.Ready, container.Image = false, image
	container.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	if ended != "" {
		container.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: ended}
	}
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
}

// breakages are snapshots with one thing wrong, and the checks that must find it, as severity and name.
var breakages = map[string]struct {
	breakIt func(*testing.T, *Snapshot)
	want    []string
}{
	"the operator is not installed": {func(_ *testing.T, s *Snapshot) {
		s.Deployments.Items = nil
	}, []string{"Error OperatorMissing"}},
	"the operator is scaled to zero": {func(_ *testing.T, s *Snapshot) {
		s.Deployments.Items[0].Spec.Replicas, s.Deployments.Items[0].Status.AvailableReplicas = new(int32(0)), 0
	}, []string{"Error OperatorDown"}},
	"the operator watches other namespaces": {func(_ *testing.T, s *Snapshot) {
		s.Deployments.Items[0].Spec.Template.Spec.Containers[0].Args = []string{"manager", "--namespaces=a,b"}
	}, []string{"Error NamespaceNotWatched"}},
	"no operator is the leader": {func(_ *testing.T, s *Snapshot) {
		s.Leases.Items[0].Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-time.Hour)))
	}, []string{"Error NoLeader"}},
	"a CRD is missing": {func(_ *testing.T, s *Snapshot) {
		s.ResourceTypes.Items = s.ResourceTypes.Items[1:]
	}, []string{"Error MissingCRD"}},
	"a CRD lacks a field": {func(_ *testing.T, s *Snapshot) {
		for i := range s.ResourceTypes.Items {
			if crd := &s.ResourceTypes.Items[i]; strings.HasPrefix(crd.Metadata.Name, "nodesets.") {
				delete(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "reservedMemory")
			}
		}
	}, []string{"Error OldCRD"}},
	"the webhook has no ready pod": {func(_ *testing.T, s *Snapshot) {
		s.Endpoints.Items[0].Endpoints[0].Conditions.Ready = new(false)
	}, []string{"Warning WebhookDown"}},
	"a webhook that must answer has no pod": {func(_ *testing.T, s *Snapshot) {
		s.Endpoints.Items = nil
		s.Webhooks.Items[0].Webhooks[0].FailurePolicy = nil
	}, []string{"Error WebhookDown"}},
	"the certificate of the webhook has expired": {func(t *testing.T, s *Snapshot) {
		t.Helper()
		s.Webhooks.Items[0] = reviewing(certificate(t, -old))
	}, []string{"Warning WebhookCertificate"}},
	"the certificate of the webhook expires soon": {func(t *testing.T, s *Snapshot) {
		t.Helper()
		s.Webhooks.Items[0] = reviewing(certificate(t, old))
	}, []string{"Warning WebhookCertificate"}},
	"the webhook has no certificate": {func(_ *testing.T, s *Snapshot) {
		s.Webhooks.Items[0] = reviewing(nil)
	}, []string{"Warning WebhookCertificate"}},
	"a condition is False": {func(_ *testing.T, s *Snapshot) {
		s.Objects.Controllers[0].Status.Conditions[0] = condition(slinkyv1beta1.ConditionReady, metav1.ConditionFalse,
			slinkyv1beta1.ReasonRefused,
			"slurmctld refuses configuration 5f0c: spec.extraConf line 2: PriorityTpye=priority/multifactor")
	}, []string{"Error Refused"}},
	"an object was never reconciled": {func(_ *testing.T, s *Snapshot) {
		s.Objects.LoginSets[0].Status.Conditions = nil
	}, []string{"Error NotReconciled"}},
	"settings are held back": {func(_ *testing.T, s *Snapshot) {
		s.Objects.Controllers[0].Status.Conditions = append(s.Objects.Controllers[0].Status.Conditions,
			condition(slinkyv1beta1.ConditionConfigurationApplied, metav1.ConditionTrue, slinkyv1beta1.ReasonApplied,
				"slurmctld runs with configuration 5f0c; left out until the last older slurmd is gone, which would exit "+
					"because of it, with its jobs: PrologTimeout"))
	}, []string{"Warning HeldBack"}},
	"jobs are not confined by choice": {func(_ *testing.T, s *Snapshot) {
		s.Objects.Controllers[0].Status.JobConfinement = slinkyv1beta1.JobConfinementNone
		s.Objects.Controllers[0].Spec.JobConfinement = slinkyv1beta1.JobConfinementNone
	}, []string{"Notice Unconfined"}},
	"jobs are not confined since ever": {func(_ *testing.T, s *Snapshot) {
		s.Objects.Controllers[0].Status.JobConfinement = slinkyv1beta1.JobConfinementNone
	}, []string{"Warning Unconfined"}},
	"a NodeSet has a reserved name": {func(_ *testing.T, s *Snapshot) {
		set := slinkyv1beta1.NodeSet{ObjectMeta: object("slurm", "default")}
		set.Status.Conditions, set.Spec.Partition.Enabled = isReady, true
		s.Objects.NodeSets = append(s.Objects.NodeSets, set)
	}, []string{"Error ReservedName"}},
	"a pod is not scheduled": {func(_ *testing.T, s *Snapshot) {
		s.Pods.Items[0].Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
		}}
	}, []string{"Error Unscheduled"}},
	"an image cannot be pulled": {func(_ *testing.T, s *Snapshot) {
		s.Objects.NodeSets[0].Spec.Slurmd.Raw = []byte(`{"image":"slurmd:26.5"}`)
		waiting(&s.Pods.Items[0], "slurmd:26.5", "ImagePullBackOff", "not found", "")
	}, []string{"Error ImagePull"}},
	"a container crashes": {func(_ *testing.T, s *Snapshot) {
		waiting(&s.Pods.Items[2], "", "CrashLoopBackOff", "back-off", "fatal: bad key")
	}, []string{"Error ContainerFails"}},
	"the image has no SSSD": {func(_ *testing.T, s *Snapshot) {
		waiting(&s.Pods.Items[1], "", "CrashLoopBackOff", "back-off", "/start: line 9: sssd: command not found")
	}, []string{"Error ContainerFails", "Error NoSSSD"}},
	"slurmd cannot resolve slurmctld": {func(_ *testing.T, s *Snapshot) {
		s.Logs["slurm/gpu-0"] = "slurmd: starting\nslurmd: error: slurm_set_addr: Unable to resolve \"slurm-controller-0\"\n"
	}, []string{"Error NameResolution"}},
	"slurmd has another key": {func(_ *testing.T, s *Snapshot) {
		s.Logs["slurm/gpu-0"] = "slurmd: error: Unable to register: Protocol authentication error\n"
	}, []string{"Error Authentication"}},
	"a pod of others has the name of a slurmd pod": {func(_ *testing.T, s *Snapshot) {
		s.Pods.Items[0].OwnerReferences = nil
	}, []string{"Error NameTaken"}},
	"a finalizer of others blocks a deletion": {func(_ *testing.T, s *Snapshot) {
		s.Objects.NodeSets[0].DeletionTimestamp = new(metav1.NewTime(now.Add(-time.Hour)))
		s.Objects.NodeSets[0].Finalizers = []string{slinkyv1beta1.FinalizerDrain, "example.com/audit"}
	}, []string{"Warning Finalizer"}},
	"a pod does not terminate on a lost Kubernetes node": {func(_ *testing.T, s *Snapshot) {
		s.Pods.Items[0].DeletionTimestamp = new(metav1.NewTime(now.Add(-time.Hour)))
	}, []string{"Warning NodeLost"}},
	"a StorageClass does not exist": {func(_ *testing.T, s *Snapshot) {
		s.Claims.Items[0] = claim(corev1.ClaimPending, "fast")
	}, []string{"Error PVCPending"}},
	"there is no default StorageClass": {func(_ *testing.T, s *Snapshot) {
		s.Claims.Items[0] = claim(corev1.ClaimPending, "")
	}, []string{"Error PVCPending"}},
	"a provisioner does not answer": {func(_ *testing.T, s *Snapshot) {
		s.Claims.Items[0] = claim(corev1.ClaimPending, "standard")
	}, []string{"Error PVCPending"}},
	"a volume is lost": {func(_ *testing.T, s *Snapshot) {
		s.Claims.Items[0] = claim(corev1.ClaimLost, "standard")
	}, []string{"Error PVCLost"}},
	"a NodeSet has no budget by choice": {func(_ *testing.T, s *Snapshot) {
		s.Objects.NodeSets[0].Spec.WorkloadDisruptionProtection = new(false)
	}, []string{"Warning EvictionAllowed"}},
	"a NodeSet has no budget": {func(_ *testing.T, s *Snapshot) {
		s.Budgets.Items = nil
	}, []string{"Error EvictionAllowed"}},
	"a budget was changed": {func(_ *testing.T, s *Snapshot) {
		s.Budgets.Items[0].Status.DisruptionsAllowed = 1
	}, []string{"Error EvictionAllowed"}},
	"a budget of others selects slurmd pods": {func(_ *testing.T, s *Snapshot) {
		foreign := policyv1.PodDisruptionBudget{ObjectMeta: object("slurm", "everything")}
		foreign.Spec.Selector = &metav1.LabelSelector{}
		s.Budgets.Items = append(s.Budgets.Items, foreign)
	}, []string{"Warning ForeignBudget"}},
	"a quota is used up": {func(_ *testing.T, s *Snapshot) {
		s.Quotas.Items[0], s.Objects.NodeSets[0].Status.Desired = quota("10", "10"), 3
	}, []string{"Error Quota"}},
	"a token was not renewed": {func(_ *testing.T, s *Snapshot) {
		s.Objects.Tokens[0].Status.ExpiresAt = new(metav1.NewTime(now.Add(-time.Minute)))
	}, []string{"Error TokenNotRenewed"}},
	"a token expires soon and is not renewed": {func(_ *testing.T, s *Snapshot) {
		s.Objects.Tokens[0].Spec.Refresh = new(false)
	}, []string{"Warning TokenExpires"}},
	"a clock is ahead": {func(_ *testing.T, s *Snapshot) {
		s.NodeLeases.Items[0].Spec.RenewTime = new(metav1.NewMicroTime(now.Add(40 * time.Second)))
	}, []string{"Warning ClockSkew"}},
	"a clock is far behind": {func(_ *testing.T, s *Snapshot) {
		s.NodeLeases.Items[0].Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-time.Hour)))
	}, []string{"Error ClockSkew"}},
	"an administrator drained a node": {func(_ *testing.T, s *Snapshot) {
		s.SlurmNodes["slurm/slurm"] = append(s.SlurmNodes["slurm/slurm"], slurm.Node{
			Name: "gpu-2", State: slurm.StateIdle, Flags: slurm.FlagDrain, Reason: "XID 79", ReasonBy: "root",
			ReasonAt: now.Add(-3 * time.Hour),
		})
	}, []string{"Warning NodesDrained"}},
	"Kubernetes has no room for elastic nodes": {func(_ *testing.T, s *Snapshot) {
		s.Objects.NodeSets[0].Status.Conditions = append(s.Objects.NodeSets[0].Status.Conditions,
			condition(slinkyv1beta1.ConditionCapacityUnavailable, metav1.ConditionTrue, slinkyv1beta1.ReasonUnschedulable,
				"Kubernetes has no room for more pods: 61 Slurm nodes closed to jobs"))
	}, []string{"Warning Unschedulable"}},
	"Slurm is too old for the topology of nodes": {func(_ *testing.T, s *Snapshot) {
		s.Objects.NodeSets[0].Status.Conditions = append(s.Objects.NodeSets[0].Status.Conditions,
			condition(slinkyv1beta1.ConditionTopologyApplied, metav1.ConditionFalse, slinkyv1beta1.ReasonUnsupportedVersion,
				"Slurm 24.11 cannot change the topology of nodes"))
	}, []string{"Warning UnsupportedVersion"}},
	"a node is down": {func(_ *testing.T, s *Snapshot) {
		s.SlurmNodes["slurm/slurm"][0].State = slurm.StateDown
		s.SlurmNodes["slurm/slurm"][0].Reason = "Not responding"
	}, []string{"Error NodesDown"}},
}

func TestChecks(t *testing.T) {
	if found := Examine(healthy(t)).Findings; len(found) > 0 {
		t.Fatalf("a healthy cluster has findings: %+v", found)
	}
	for name, test := range breakages {
		t.Run(name, func(t *testing.T) {
			snapshot := healthy(t)
			test.breakIt(t, snapshot)
			var got []string
			for _, finding := range Examine(snapshot).Findings {
				got = append(got, string(finding.Severity)+" "+finding.Check)
				if finding.Problem == "" || finding.Effect == "" || finding.Fix == "" || finding.Docs == "" {
					t.Errorf("incomplete: %+v", finding)
				}
				if strings.Contains(finding.Fix, " delete ") {
					t.Errorf("deletes: %s", finding.Fix)
				}
				if strings.Contains(finding.Fix, "{namespace}") || strings.Contains(finding.Fix, "{name}") {
					t.Errorf("placeholders in %s", finding.Fix)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings differ (-want +got):\n%s", diff)
			}
		})
	}
}

// Everything that is not yet a problem must not be a finding.
func TestPassingStatesAreNoFindings(t *testing.T) {
	for name, change := range map[string]func(*Snapshot){
		"a reason that passes by itself": func(s *Snapshot) {
			s.Objects.NodeSets[0].Status.Conditions = []metav1.Condition{condition(slinkyv1beta1.ConditionReady,
				metav1.ConditionFalse, slinkyv1beta1.ReasonDraining, "waiting for job 4711")}
		},
		"a reason that has not lasted": func(s *Snapshot) {
			young := condition(slinkyv1beta1.ConditionReady, metav1.ConditionFalse, slinkyv1beta1.ReasonPodsNotReady, "starting")
			young.LastTransitionTime = metav1.NewTime(now.Add(-time.Minute))
			s.Objects.NodeSets[0].Status.Conditions = []metav1.Condition{young}
		},
		"a PVC that waits for its pod": func(s *Snapshot) {
			s.Claims.Items[0] = claim(corev1.ClaimPending, "standard")
			s.StorageClasses.Items[0].VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
		},
		"a PVC of others": func(s *Snapshot) {
			s.Claims.Items[0] = claim(corev1.ClaimPending, "fast")
			s.Claims.Items[0].Labels = nil
		},
		"a node that is down under a drain of the operator": func(s *Snapshot) {
			s.SlurmNodes["slurm/slurm"][0].State, s.SlurmNodes["slurm/slurm"][0].Flags = slurm.StateDown, slurm.FlagDrain
			s.SlurmNodes["slurm/slurm"][0].Reason = slurm.OurReason("update")
		},
		"a node that is being rebooted": func(s *Snapshot) {
			s.SlurmNodes["slurm/slurm"][0].State, s.SlurmNodes["slurm/slurm"][0].Flags = slurm.StateDown, slurm.FlagRebootIssued
		},
		"a budget of others for pods that the operator does not protect": func(s *Snapshot) {
			foreign := policyv1.PodDisruptionBudget{ObjectMeta: object("slurm", "everything")}
			foreign.Spec.Selector = &metav1.LabelSelector{}
			s.Budgets.Items = []policyv1.PodDisruptionBudget{foreign}
			s.Objects.NodeSets = nil
		},
		"a full quota when no pod is missing": func(s *Snapshot) { s.Quotas.Items[0] = quota("10", "10") },
		"a pod that is just being created": func(s *Snapshot) {
			waiting(&s.Pods.Items[0], "", "ContainerCreating", "", "")
		},
		"a pod that terminates": func(s *Snapshot) {
			s.Pods.Items[0].DeletionTimestamp = new(metav1.NewTime(now))
		},
		"a skewed clock of a Kubernetes node without Slurm": func(s *Snapshot) {
			s.NodeLeases.Items[0].Name = "node-9"
			s.NodeLeases.Items[0].Spec.RenewTime = new(metav1.NewMicroTime(now.Add(time.Hour)))
		},
		"a node that is powered down": func(s *Snapshot) {
			s.SlurmNodes["slurm/slurm"][0].State, s.SlurmNodes["slurm/slurm"][0].Flags = slurm.StateDown, slurm.FlagPoweredDown
		},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := healthy(t)
			change(snapshot)
			if found := Examine(snapshot).Findings; len(found) > 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}

func TestUnreadableListsAreNotEmptyOnes(t *testing.T) {
	all := healthy(t)
	found := Examine(&Snapshot{Now: now, Objects: all.Objects}).Findings
	if len(found) > 0 {
		t.Errorf("without rights: %+v", found)
	}
}

// Every reason of the API has a remedy, or is no problem.
func TestEveryReasonIsKnown(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../api/v1beta1/conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	ast.Inspect(file, func(node ast.Node) bool {
		value, is := node.(*ast.ValueSpec)
		if !is || !strings.HasPrefix(value.Names[0].Name, "Reason") {
			return true
		}
		count++
		reason := strings.Trim(value.Values[0].(*ast.BasicLit).Value, `"`)
		if _, remedied := remedies[reason]; remedied == expected[reason] {
			t.Errorf("the reason %s must be in remedies or in expected, and not in both", reason)
		}
		return true
	})
	if count < 40 {
		t.Errorf("only %d reasons were found", count)
	}
}

// notInLinks matches the characters that links to headings do not have.
var notInLinks = regexp.MustCompile(`[^a-z0-9 _-]`)

// The pages of all findings exist. Those of reasons are runbooks, which have their own test.
func TestLinkedPagesExist(t *testing.T) {
	for name, test := range breakages {
		snapshot := healthy(t)
		test.breakIt(t, snapshot)
		for _, finding := range Examine(snapshot).Findings {
			page, anchor, _ := strings.Cut(finding.Docs, "#")
			if strings.HasPrefix(page, "docs/runbooks/") {
				continue
			}
			text, err := os.ReadFile(filepath.Join("../../..", page))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			found := anchor == ""
			for line := range strings.Lines(string(text)) {
				if heading, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); is && strings.HasPrefix(line, "#") {
					link := notInLinks.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
					found = found || strings.ReplaceAll(link, " ", "-") == anchor
				}
			}
			if !found {
				t.Errorf("%s: %s has no heading %s", name, page, anchor)
			}
		}
	}
}

func TestRefusedLineIsRemovedByTheFix(t *testing.T) {
	snapshot := healthy(t)
	breakages["a condition is False"].breakIt(t, snapshot)
	want := `kubectl --namespace slurm patch controller slurm --type=merge ` +
		`--patch='{"spec":{"extraConf":"SchedulerType=sched/backfill\n"}}'`
	if diff := cmp.Diff(want, Examine(snapshot).Findings[0].Fix); diff != "" {
		t.Error(diff)
	}
}

// The proposed image is one that runs: the operator's own could be of another release of Slurm, and slurmctld does not
// return from a later one.
func TestImageFixReturnsToTheImageThatRuns(t *testing.T) {
	pod := func(name string, daemon naming.Daemon, image string, state corev1.ContainerState) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: name, Labels: naming.Labels(daemon, "slurm")},
			Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "exporter", Image: "exporter:1.9"}, {Name: string(daemon), Image: image},
			}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
				{Name: "exporter", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
				{Name: string(daemon), Image: image, State: state},
			}},
		}
	}
	const wrong = "example.com/slurmctld:25.05.33"
	controller := slinkyv1beta1.Controller{ObjectMeta: object("slurm", "slurm")}
	controller.Spec.Slurmctld.Raw = []byte(`{"image":"` + wrong + `"}`)
	snapshot := &Snapshot{Now: now}
	snapshot.Objects.Controllers = []slinkyv1beta1.Controller{controller}
	snapshot.Pods.Items = []corev1.Pod{pod("slurm-trial-1", naming.Validation, wrong,
		corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}})}
	fix := func() string {
		findings := pods(snapshot)
		if len(findings) != 1 {
			t.Fatalf("%+v", findings)
		}
		return findings[0].Fix
	}
	if got := fix(); got != "kubectl --namespace slurm edit controller slurm" {
		t.Errorf("while no slurmctld runs: %s", got)
	}
	snapshot.Pods.Items = append(snapshot.Pods.Items, pod("slurm-controller-0", naming.Slurmctld,
		"example.com/slurmctld:25.05.3", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}))
	if got := fix(); got != `kubectl --namespace slurm patch controller slurm --type=merge `+
		`--patch='{"spec":{"slurmctld":{"image":"example.com/slurmctld:25.05.3"}}}'` {
		t.Errorf("while slurmctld runs: %s", got)
	}
}

// kubectl logs --previous fails for a container that has not ended yet.
func TestLogIsShownOnlyOfAContainerThatHasEnded(t *testing.T) {
	for ended, want := range map[string]string{
		"fatal: bad key": "kubectl --namespace slurm logs gpu-0 --container=slurmd --previous --tail=50",
		"":               "kubectl --namespace slurm describe pod gpu-0",
	} {
		snapshot := healthy(t)
		waiting(&snapshot.Pods.Items[0], "", "CreateContainerConfigError", "secret \"x\" not found", ended)
		findings := pods(snapshot)
		if len(findings) != 1 || findings[0].Fix != want {
			t.Errorf("%q: %+v, want %s", ended, findings, want)
		}
	}
}

// All findings as users see them.
func TestOutput(t *testing.T) {
	snapshot := healthy(t)
	for _, name := range []string{
		"the webhook has no ready pod", "a condition is False", "an image cannot be pulled", "a StorageClass does not exist",
		"jobs are not confined by choice", "an administrator drained a node",
	} {
		breakages[name].breakIt(t, snapshot)
	}
	snapshot.Notes = []string{"you may not list leases.coordination.k8s.io in the namespace kube-node-lease"}
	result := Examine(snapshot)
	page := &output.Page{}
	result.Draw(page)
	golden.Compare(t, "findings.txt", page.String())
	page = &output.Page{}
	well := Examine(healthy(t))
	well.Draw(page)
	golden.Compare(t, "healthy.txt", page.String())
}

func TestExitCode(t *testing.T) {
	for name, test := range map[string]struct {
		breakage string
		want     int
	}{
		"2 for errors":   {"a condition is False", 2},
		"1 for warnings": {"the webhook has no ready pod", 1},
		"0 for notices":  {"jobs are not confined by choice", 0},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := healthy(t)
			breakages[test.breakage].breakIt(t, snapshot)
			if result := Examine(snapshot); result.ExitCode() != test.want {
				t.Errorf("exit code %d", result.ExitCode())
			}
		})
	}
}

// A fix is about how the webhook and the CRDs were installed.
func TestFixesFollowTheInstallation(t *testing.T) {
	snapshot := healthy(t)
	snapshot.ResourceTypes.Items = snapshot.ResourceTypes.Items[1:]
	snapshot.ResourceTypes.Items[0].Metadata.Annotations = map[string]string{"meta.helm.sh/release-namespace": "slinky"}
	snapshot.Webhooks.Items[0] = reviewing(nil)
	snapshot.Webhooks.Items[0].Annotations = map[string]string{
		"cert-manager.io/inject-ca-from": "slurm-operator/slurm-operator-webhook",
	}
	fixes := map[string]string{}
	for _, finding := range Examine(snapshot).Findings {
		fixes[finding.Check] = finding.Fix
	}
	want := map[string]string{
		"MissingCRD": "helm upgrade --install slurm-operator-crds charts/slurm-operator-crds --namespace slinky",
		"WebhookCertificate": "kubectl --namespace slurm-operator describe certificates.cert-manager.io " +
			"slurm-operator-webhook",
	}
	if diff := cmp.Diff(want, fixes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
