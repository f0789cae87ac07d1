//go:build integration

package operator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
)

// I23: the operator connects only to the Service that the RestApi controls, by its cluster IP. A Service of that name
// that another user made gets no token, not even if it replaces the operator's own.
func TestTokensAreSentOnlyToTheServiceOfTheRestApi(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	stranger := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "slurm-restapi"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 6820}}},
	}
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}}
	world.create(t, stranger, controller, newRestAPI())
	t.Cleanup(world.acceptEverything(t))
	reachable := func(is metav1.ConditionStatus, reason string) {
		t.Helper()
		world.eventually(t, "slurm", controller, func() error {
			return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable, is, reason)
		})
	}
	key := &corev1.Secret{}
	world.eventually(t, "slurm-auth-jwths256", key, func() error { return nil })
	world.slurm.SetKey(key.Data["jwt_hs256.key"])
	reachable(metav1.ConditionFalse, slinkyv1beta1.ReasonEndpointNotVerified)
	if dialed := world.dials(); len(dialed) > 0 {
		t.Fatalf("connected to %s before the Service was verified", dialed[0].Address)
	}

	if err := world.Delete(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	world.patch(t, newRestAPI(), `{"metadata": {"annotations": {"example.com/try": "again"}}}`)
	reachable(metav1.ConditionTrue, slinkyv1beta1.ReasonConnected)
	service := &corev1.Service{}
	world.get(t, "slurm-restapi", service)
	last := world.dials()[len(world.dials())-1]
	if want := service.Spec.ClusterIP + ":6820"; last.Address != want {
		t.Errorf("connected to %q instead of %s", last.Address, want)
	}
	if _, err := last.Token(t.Context()); err != nil {
		t.Error(err)
	}

	world.patch(t, service, `{"metadata": {"ownerReferences": null}}`)
	reachable(metav1.ConditionFalse, slinkyv1beta1.ReasonEndpointNotVerified)
	if _, err := last.Token(t.Context()); err == nil {
		t.Error("the session would still send tokens")
	}
}

// A RestApi that is created later does not become the operator's, unless the Controller names it.
func TestOperatorKeepsItsRestApi(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	first, another := newRestAPI(), newRestAPI()
	world.get(t, first.Name, first)
	// Kubernetes records the second of a creation, and of two in the same one, the name decides.
	time.Sleep(time.Until(first.CreationTimestamp.Add(time.Second)))
	another.Name = "a"
	world.create(t, another)
	service := &corev1.Service{}
	world.eventually(t, "a-restapi", service, func() error { return nil })
	world.waitUntilIdle(t)
	uses := func(address string) bool {
		return slices.ContainsFunc(world.dials(), func(options rest.Options) bool { return options.Address == address })
	}
	if uses(service.Spec.ClusterIP + ":6820") {
		t.Error("the later RestApi is used")
	}
	world.patch(t, controller, `{"metadata": {"annotations": {%q: "a"}}}`, slinkyv1beta1.AnnotationRestAPI)
	world.eventually(t, "slurm", controller, func() error {
		if !uses(service.Spec.ClusterIP + ":6820") {
			return errors.New("the named RestApi is not used")
		}
		return nil
	})
	world.patch(t, controller, `{"metadata": {"annotations": {%q: "missing"}}}`, slinkyv1beta1.AnnotationRestAPI)
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable,
			metav1.ConditionFalse, slinkyv1beta1.ReasonNoRestAPI)
	})
}

// dials returns how the manager has connected to slurmrestd so far.
func (w *world) dials() []rest.Options {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialed)
}

// A server at the address of slurmctld's pod that does not have the cluster's key cannot make a configuration count as
// applied. An agent that does not have a new key yet is such a server too.
func TestReportsOfStrangersAreNotTrusted(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	world.setAgentKey([]byte("the key of another cluster"))
	world.patch(t, controller, `{"spec": {"extraConf": "MaxArraySize=5000"}}`)
	defer world.acceptEverything(t)() // the agent says that slurmctld runs with it
	live := &corev1.ConfigMap{}
	world.eventually(t, "slurm-config", live, func() error {
		if !strings.Contains(live.Data["slurm.conf"], "MaxArraySize=5000") {
			return errors.New("it has no MaxArraySize")
		}
		return nil
	})
	world.eventually(t, "slurm", controller, func() error {
		found := meta.FindStatusCondition(controller.Status.Conditions, slinkyv1beta1.ConditionConfigurationApplied)
		if found == nil || found.Status != metav1.ConditionFalse || found.ObservedGeneration != controller.Generation ||
			!strings.Contains(found.Message, report.ErrNotAuthenticated.Error()) {
			return fmt.Errorf("condition %+v", found)
		}
		return nil
	})
	if controller.Status.AppliedConfigHash == live.Annotations[hashAnnotation] {
		t.Error("the status has the hash of the stranger")
	}
	secret := &corev1.Secret{}
	world.get(t, "slurm-auth-jwths256", secret)
	world.setAgentKey(secret.Data["jwt_hs256.key"])
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionConfigurationApplied,
			metav1.ConditionTrue, slinkyv1beta1.ReasonApplied)
	})
}

// Any user who may create pods can give them the labels of slurmctld or of a validation run. Such pods neither answer
// for slurmctld, nor accept a configuration, nor delay the replacement of slurmctld's pod.
func TestPodsWithForgedLabelsAreIgnored(t *testing.T) {
	t.Parallel()
	const forgedAddress = "10.0.0.66"
	world := newWorld(t)
	controller := world.readyController(t)
	live := &corev1.ConfigMap{}
	world.get(t, "slurm-config", live)
	world.setAgentAt(forgedAddress, agent.Report{FilesHash: "forged", RunningHash: "forged", LastError: "forged"})
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "trial", Image: "any"}}}
	world.createPod(t, "forged", forgedAddress, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: naming.Labels(naming.Slurmctld, "slurm")}, Spec: spec,
	})

	// The forged run would accept every configuration: it is later than the real one.
	world.patch(t, controller, `{"spec": {"extraConf": "MaxArraySize=5000"}}`)
	var run *corev1.Pod
	world.eventually(t, "slurm", controller, func() error {
		if run = world.pendingValidation(t.Context()); run == nil {
			return errors.New("there is no validation run")
		}
		return nil
	})
	forged := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "forged-run", Labels: run.Labels, Annotations: run.Annotations}, Spec: spec,
	}
	time.Sleep(1100 * time.Millisecond) // creation times have seconds
	world.create(t, forged)
	if err := world.setReport(t.Context(), forged, validation.Report{
		Outcome: validation.Accepted, SlurmVersion: "26.05.5",
	}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // nothing shows that it was ignored
	before := live.Annotations[hashAnnotation]
	if world.get(t, "slurm-config", live); live.Annotations[hashAnnotation] != before {
		t.Error("a forged validation run has accepted the configuration")
	}
	if err := world.setReport(t.Context(), run, validation.Report{
		Outcome: validation.Accepted, SlurmVersion: "26.05.5",
	}); err != nil {
		t.Fatal(err)
	}
	world.eventually(t, "slurm-config", live, func() error {
		if live.Annotations[hashAnnotation] == before {
			return errors.New("not promoted yet")
		}
		return nil
	})
	world.setAgent(agentWith(live))
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionTrue,
			slinkyv1beta1.ReasonAsExpected)
	})
	world.mu.Lock()
	defer world.mu.Unlock()
	if world.queried[forgedAddress] || !world.queried[slurmctldAddress] {
		t.Errorf("agents were queried at %v", world.queried)
	}
}
