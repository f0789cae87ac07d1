//go:build integration

package operator_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/controller/loginset"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/operator"
	"github.com/slurm-operator/slurm-operator/internal/status"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

// loginChildren returns the children that the LoginSet login owns, with name and kind, in the order of the golden file.
func loginChildren() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		object("login", corev1.SchemeGroupVersion.WithKind("Service")),
		object("login-hosts", corev1.SchemeGroupVersion.WithKind("Service")),
		object("login-sshd", corev1.SchemeGroupVersion.WithKind("ConfigMap")),
		object("login", appsv1.SchemeGroupVersion.WithKind("Deployment")),
		object("login", policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")),
	}
}

func TestLoginSetReportsEveryStage(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	set := newLoginSet()
	set.Spec.SSSDConfRef = &slinkyv1beta1.SecretKeyReference{Name: "sssd", Key: "sssd.conf"}
	world.create(t, set)
	ready := func(is metav1.ConditionStatus, reason string) {
		t.Helper()
		world.eventually(t, "login", set, func() error {
			return condition(set, set.Status.Conditions, slinkyv1beta1.ConditionReady, is, reason)
		})
	}
	ready(metav1.ConditionFalse, slinkyv1beta1.ReasonControllerNotFound)
	world.create(t, loginController())
	ready(metav1.ConditionFalse, slinkyv1beta1.ReasonControllerNotReady)
	world.create(t, loginKeys())
	ready(metav1.ConditionFalse, slinkyv1beta1.ReasonReferenceNotFound)
	for _, child := range loginChildren() {
		if err := world.Get(t.Context(), client.ObjectKeyFromObject(child), child); !apierrors.IsNotFound(err) {
			t.Errorf("%s %s exists already: %v", child.GetKind(), child.GetName(), err)
		}
	}
	world.create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "sssd"}, Data: map[string][]byte{"sssd.conf": []byte("[sssd]")},
	})
	ready(metav1.ConditionFalse, slinkyv1beta1.ReasonReconciling)

	world.setDeployment(t,
		func(is *appsv1.DeploymentStatus) { is.Replicas, is.UpdatedReplicas, is.ReadyReplicas = 2, 2, 1 })
	ready(metav1.ConditionFalse, slinkyv1beta1.ReasonPodsNotReady)
	if set.Status.Replicas != 2 || set.Status.Ready != "1/2" ||
		set.Status.Selector != "app.kubernetes.io/instance=login,app.kubernetes.io/name=login" {
		t.Errorf("the status is %+v", set.Status)
	}

	pod := world.failingPod(t)
	ready(metav1.ConditionFalse, slinkyv1beta1.ReasonPodsFailing)
	if err := condition(set, set.Status.Conditions, slinkyv1beta1.ConditionDegraded, metav1.ConditionTrue,
		slinkyv1beta1.ReasonPodsFailing); err != nil {
		t.Error(err)
	}
	if err := world.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	ready(metav1.ConditionFalse, slinkyv1beta1.ReasonPodsNotReady)
	world.setDeployment(t, func(is *appsv1.DeploymentStatus) { is.ReadyReplicas = 2 })
	ready(metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected)
}

func TestLoginSetCreatesItsChildren(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	set := newLoginSet()
	world.create(t, loginController(), loginKeys(), set)
	world.eventually(t, "login", &policyv1.PodDisruptionBudget{}, func() error { return nil })
	world.eventually(t, "login", &appsv1.Deployment{}, func() error { return nil })
	var documents []string
	for _, live := range loginChildren() {
		world.get(t, live.GetName(), live)
		if !metav1.IsControlledBy(live, set) {
			t.Errorf("%s %s is owned by %v", live.GetKind(), live.GetName(), live.GetOwnerReferences())
		}
		if data, found, _ := unstructured.NestedMap(live.Object, "data"); found && live.GetKind() == "ConfigMap" {
			data["start"] = "…" // the script of the image
			if err := unstructured.SetNestedMap(live.Object, data, "data"); err != nil {
				t.Fatal(err)
			}
		}
		documents = append(documents, world.anonymous(t, live))
	}
	golden.Compare(t, "loginset.yaml", strings.Join(documents, "---\n"))
}

func TestLoginSetRepairsItsChildrenAndKeepsForeignFields(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	world.create(t, loginController(), loginKeys(), newLoginSet())
	deployment, configuration := &appsv1.Deployment{}, &corev1.ConfigMap{}
	world.eventually(t, "login", deployment, func() error { return nil })
	world.patch(t, deployment, `{"metadata":{"annotations":{"example.com/mine":"yes"}},"spec":{"replicas":7}}`)
	world.eventually(t, "login", deployment, func() error {
		if *deployment.Spec.Replicas != 2 {
			return fmt.Errorf("replicas are %d", *deployment.Spec.Replicas)
		}
		return nil
	})
	if deployment.Annotations["example.com/mine"] != "yes" {
		t.Errorf("annotations are %v", deployment.Annotations)
	}
	world.get(t, "login-sshd", configuration)
	if err := world.Delete(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	world.eventually(t, "login-sshd", &corev1.ConfigMap{}, func() error { return nil })
}

func TestLoginSetReplacesPodsOnlyForStartupConfig(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	set := newLoginSet()
	world.create(t, loginController(), loginKeys(), set)
	deployment, configuration := &appsv1.Deployment{}, &corev1.ConfigMap{}
	world.eventually(t, "login", deployment, func() error { return nil })
	template := func() string { return deployment.Spec.Template.Annotations["slinky.slurm.net/configuration-hash"] }
	before := template()

	world.patch(t, set, `{"spec":{"rootSshAuthorizedKeys":"ssh-ed25519 AAAA other"}}`)
	world.eventually(t, "login-sshd", configuration, func() error {
		if configuration.Data["authorized_keys"] != "ssh-ed25519 AAAA other" {
			return fmt.Errorf("the keys are %q", configuration.Data["authorized_keys"])
		}
		return nil
	})
	world.get(t, "login", deployment)
	if template() != before {
		t.Error("pods are replaced for an authorized key")
	}
	changes := func(what string) {
		t.Helper()
		world.eventually(t, "login", deployment, func() error {
			if template() == before {
				return errors.New("pods are not replaced for " + what)
			}
			return nil
		})
		before = template()
	}
	world.patch(t, set, `{"spec":{"extraSshdConfig":"LoginGraceTime 600"}}`)
	changes("another sshd_config")
	world.patch(t, loginKeys(), `{"data":{"slurm.key":"YW5vdGhlcg=="}}`)
	changes("another slurm.key")
	keys := &corev1.Secret{}
	world.get(t, "login-ssh-host-keys", keys)
	world.patch(t, keys, `{"data":{"ssh_host_rsa_key":null}}`)
	changes("other host keys")
}

// A kubelet updates a changed ConfigMap in a pod within a minute and a half, and immediately when the pod changes.
func TestLoginSetAnnotatesPodsWhenAuthorizedKeysChange(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	set, deployment := newLoginSet(), &appsv1.Deployment{}
	world.create(t, loginController(), loginKeys(), set)
	world.eventually(t, "login", deployment, func() error { return nil })
	world.createPod(t, "login-1", "10.0.0.1", corev1.PodTemplateSpec{
		ObjectMeta: deployment.Spec.Template.ObjectMeta,
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "login", Image: "none"}}, AutomountServiceAccountToken: new(false),
		},
	})
	pod, before := &corev1.Pod{}, ""
	touched := func() error {
		is := pod.Annotations["loginset.slinky.slurm.net/authorized-keys-hash"]
		if is == before {
			return fmt.Errorf("the annotation is %q", is)
		}
		before = is
		return nil
	}
	world.eventually(t, "login-1", pod, touched)
	world.patch(t, set, `{"spec":{"rootSshAuthorizedKeys":"ssh-ed25519 AAAA other"}}`)
	world.eventually(t, "login-1", pod, touched)
	world.waitUntilIdle(t)
}

func TestLoginSetChangesItsStrategy(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	set := newLoginSet()
	world.create(t, loginController(), loginKeys(), set)
	deployment := &appsv1.Deployment{}
	world.eventually(t, "login", deployment, func() error { return nil })
	for _, strategy := range []appsv1.DeploymentStrategyType{appsv1.RecreateDeploymentStrategyType,
		appsv1.RollingUpdateDeploymentStrategyType} {
		world.patch(t, set, `{"spec":{"strategy":{"type":%q}}}`, strategy)
		world.eventually(t, "login", deployment, func() error {
			if deployment.Spec.Strategy.Type != strategy {
				return fmt.Errorf("the strategy is %v", deployment.Spec.Strategy)
			}
			return nil
		})
	}
}

func TestLoginSetHasBudgetOnlyWithSeveralReplicas(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	set := newLoginSet()
	world.create(t, loginController(), loginKeys(), set)
	world.eventually(t, "login", &policyv1.PodDisruptionBudget{}, func() error { return nil })
	world.patch(t, set, `{"spec":{"replicas":1}}`)
	world.gone(t, "login", &policyv1.PodDisruptionBudget{})
}

func TestLoginSetReportsRefusedPodTemplate(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	set := newLoginSet()
	set.Spec.Login.Raw = []byte(`{"volumeMounts":[{"name":"none","mountPath":"/home"}]}`)
	world.create(t, loginController(), loginKeys(), set)
	world.eventually(t, "login", set, func() error {
		return condition(set, set.Status.Conditions, slinkyv1beta1.ConditionDegraded, metav1.ConditionTrue,
			slinkyv1beta1.ReasonInvalidSpec)
	})
}

// Users' known_hosts files must stay valid when a LoginSet is re-created, so its host keys survive deletion; nothing
// else does.
func TestHostKeysSurviveLoginSetDeletion(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	set := newLoginSet()
	world.create(t, loginController(), loginKeys(), set)
	before, after := &corev1.Secret{}, &corev1.Secret{}
	world.eventually(t, "login-ssh-host-keys", before, func() error { return nil })
	if len(before.OwnerReferences) > 0 {
		t.Errorf("the host keys are owned by %v", before.OwnerReferences)
	}
	world.eventually(t, "login", &appsv1.Deployment{}, func() error { return nil })
	if err := world.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	// Delete what the LoginSet owns, because Kubernetes' garbage collector does not run here.
	for _, child := range loginChildren() {
		if err := world.Delete(t.Context(), child); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	world.create(t, newLoginSet())
	world.eventually(t, "login", &appsv1.Deployment{}, func() error { return nil })
	world.get(t, "login-ssh-host-keys", after)
	for name, key := range before.Data {
		if !bytes.Equal(after.Data[name], key) {
			t.Errorf("%s is another key", name)
		}
	}
}

// I8: an idle LoginSet causes no writes. A reconciler that has just started applies each child once, which changes
// nothing.
func TestIdleLoginSetWritesNothing(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	set := newLoginSet()
	world.create(t, loginController(), loginKeys(), set)
	world.eventually(t, "login", set, func() error {
		return condition(set, set.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionFalse,
			slinkyv1beta1.ReasonReconciling)
	})
	world.setDeployment(t, func(is *appsv1.DeploymentStatus) {
		is.Replicas, is.UpdatedReplicas, is.ReadyReplicas = 2, 2, 2
	})
	world.eventually(t, "login", set, func() error {
		return condition(set, set.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionTrue,
			slinkyv1beta1.ReasonAsExpected)
	})

	var writes atomic.Int64
	direct, err := client.New(countWrites(server.Config, &writes), client.Options{Scheme: operator.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	reconciler := &loginset.Reconciler{
		Client: direct, Children: child.NewApplier(direct), Clock: clock.RealClock{}, Images: testImages,
		Status: status.NewWriter(direct, events.NewFakeRecorder(10),
			client.FieldOwner(naming.ManagedBy+"/"+loginset.Name)),
	}
	world.waitUntilIdle(t)
	versions := world.versions(t)
	for _, want := range []int64{6, 0, 0} { // five children and the status, then nothing
		writes.Store(0)
		if _, err := reconciler.Reconcile(t.Context(),
			ctrl.Request{NamespacedName: client.ObjectKeyFromObject(set)}); err != nil {
			t.Fatal(err)
		}
		if writes.Load() != want {
			t.Errorf("%d write requests, want %d", writes.Load(), want)
		}
	}
	if diff := cmp.Diff(versions, world.versions(t)); diff != "" {
		t.Errorf("children were written: %s", diff)
	}
}

// versions returns the resource versions of the LoginSet and all its children.
func (w *world) versions(t *testing.T) map[string]string {
	t.Helper()
	set := &slinkyv1beta1.LoginSet{}
	w.get(t, "login", set)
	versions := map[string]string{"LoginSet": set.ResourceVersion}
	for _, child := range loginChildren() {
		w.get(t, child.GetName(), child)
		versions[child.GetKind()+" "+child.GetName()] = child.GetResourceVersion()
	}
	return versions
}

// setDeployment sets the Deployment's status, because Kubernetes' Deployment controller does not run here.
func (w *world) setDeployment(t *testing.T, change func(*appsv1.DeploymentStatus)) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	w.eventually(t, "login", deployment, func() error { return nil })
	deployment.Status.ObservedGeneration = deployment.Generation
	change(&deployment.Status)
	if err := w.Status().Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
}

// failingPod creates a pod of the LoginSet that cannot pull its image.
func (w *world) failingPod(t *testing.T) *corev1.Pod {
	t.Helper()
	deployment := &appsv1.Deployment{}
	w.get(t, "login", deployment)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "login-1", Labels: deployment.Spec.Template.Labels},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "login", Image: "none"}}, AutomountServiceAccountToken: new(false),
		},
	}
	w.create(t, pod)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "login", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
	}}
	if err := w.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func newLoginSet() *slinkyv1beta1.LoginSet {
	return &slinkyv1beta1.LoginSet{ObjectMeta: metav1.ObjectMeta{Name: "login"}, Spec: slinkyv1beta1.LoginSetSpec{
		ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}, Replicas: new(int32(2)),
		RootSSHAuthorizedKeys: "ssh-ed25519 AAAA admin",
	}}
}

func loginController() *slinkyv1beta1.Controller {
	return &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}, Spec: slinkyv1beta1.ControllerSpec{
		ClusterName: "slurm", SlurmKeyRef: &slinkyv1beta1.SecretKeyReference{Name: "keys", Key: "slurm.key"},
	}}
}

func loginKeys() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "keys"},
		Data:       map[string][]byte{"slurm.key": bytes.Repeat([]byte{1}, 1024)},
	}
}
