//go:build integration

package operator_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

const slurmConf = "ClusterName=slurm\nSlurmctldHost=slurm-controller-0\nAuthType=auth/slurm\n"

func TestRestApiBecomesReadyWithItsController(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	restAPI := newRestAPI()
	world.create(t, restAPI)
	ready := func(is metav1.ConditionStatus, reason string) {
		t.Helper()
		world.eventually(t, "slurm", restAPI, func() error {
			return condition(restAPI, restAPI.Status.Conditions, slinkyv1beta1.ConditionReady, is, reason)
		})
	}
	ready(metav1.ConditionFalse, slinkyv1beta1.ReasonControllerNotFound)
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}}
	world.create(t, controller)
	ready(metav1.ConditionFalse, slinkyv1beta1.ReasonControllerNotReady)
	configuration := world.configure(t, controller, slurmConf)
	ready(metav1.ConditionFalse, slinkyv1beta1.ReasonReconciling)

	deployment := &appsv1.Deployment{}
	world.get(t, "slurm-restapi", deployment)
	for _, child := range []client.Object{deployment, &corev1.Service{}, &corev1.ConfigMap{}} {
		world.get(t, "slurm-restapi", child)
		if !metav1.IsControlledBy(child, restAPI) {
			t.Errorf("%T is owned by %v, so it would survive deletion of the RestApi", child,
				child.GetOwnerReferences())
		}
	}
	if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "example.com/slurm/slurmrestd:26.05" {
		t.Errorf("the image is %s", image)
	}
	world.setDeploymentReady(t, deployment)
	ready(metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected)
	if restAPI.Status.Ready != "1/1" || restAPI.Status.Replicas != 1 ||
		restAPI.Status.Selector != "app.kubernetes.io/instance=slurm,app.kubernetes.io/name=slurmrestd" {
		t.Errorf("status is %+v", restAPI.Status)
	}

	t.Run("a new partition does not restart slurmrestd", func(t *testing.T) {
		before := deployment.Generation
		world.patch(t, configuration, `{"data": {"slurm.conf": %q}}`, slurmConf+"PartitionName=debug Nodes=ALL\n")
		// Changes are handled in order: once the port has changed, the partition has been handled too.
		world.patch(t, restAPI, `{"spec": {"service": {"port": 8080}}}`)
		service := &corev1.Service{}
		world.eventually(t, "slurm-restapi", service, func() error {
			if port := service.Spec.Ports[0].Port; port != 8080 {
				return fmt.Errorf("port %d", port)
			}
			return nil
		})
		ready(metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected)
		world.get(t, "slurm-restapi", deployment)
		if deployment.Generation != before {
			t.Error("the Deployment was changed")
		}
		world.waitUntilIdle(t)
	})
	t.Run("accounting restarts slurmrestd", func(t *testing.T) {
		world.patch(t, configuration, `{"data": {"slurm.conf": %q}}`,
			slurmConf+"AccountingStorageType=accounting_storage/slurmdbd\n")
		world.eventually(t, "slurm-restapi", deployment, func() error {
			if !slices.Contains(deployment.Spec.Template.Spec.Containers[0].Args,
				"openapi/slurmctld,openapi/slurmdbd") {
				return errors.New("slurmdbd's API is not served")
			}
			return nil
		})
		ready(metav1.ConditionFalse, slinkyv1beta1.ReasonReconciling)
	})
}

func TestRestApiChildrenAreRepairedAndKeepForeignFields(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	restAPI, controller := newRestAPI(), &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}}
	restAPI.Spec.Replicas = new(int32(2))
	world.create(t, controller, restAPI)
	world.configure(t, controller, slurmConf)
	service, budget := &corev1.Service{}, &policyv1.PodDisruptionBudget{}
	world.eventually(t, "slurm-restapi", budget, func() error { return nil })

	world.get(t, "slurm-restapi", service)
	world.patch(t, service,
		`{"metadata": {"annotations": {"example.com/mine": "yes"}}, "spec": {"selector": {"app.kubernetes.io/name": "other"}}}`)
	world.eventually(t, "slurm-restapi", service, func() error {
		if name := service.Spec.Selector["app.kubernetes.io/name"]; name != "slurmrestd" {
			return fmt.Errorf("the Service selects %s", name)
		}
		return nil
	})
	if service.Annotations["example.com/mine"] != "yes" {
		t.Errorf("annotations are %v", service.Annotations)
	}
	if err := world.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	world.eventually(t, "slurm-restapi", service, func() error { return nil })

	// Protecting a single pod would block draining its Kubernetes node.
	world.patch(t, restAPI, `{"spec": {"replicas": 1}}`)
	world.gone(t, "slurm-restapi", budget)
}

func TestRestApiReportsRefusedPodTemplate(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	restAPI, controller := newRestAPI(), &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}}
	restAPI.Spec.Slurmrestd.Raw = []byte(`{"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}`)
	world.create(t, controller, restAPI)
	world.configure(t, controller, slurmConf)
	world.eventually(t, "slurm", restAPI, func() error {
		return condition(restAPI, restAPI.Status.Conditions, slinkyv1beta1.ConditionDegraded, metav1.ConditionTrue,
			slinkyv1beta1.ReasonInvalidSpec)
	})
	world.patch(t, restAPI, `{"spec": {"slurmrestd": {"resources": {"limits": {"cpu": "3"}}}}}`)
	world.eventually(t, "slurm", restAPI, func() error {
		return condition(restAPI, restAPI.Status.Conditions, slinkyv1beta1.ConditionDegraded, metav1.ConditionFalse,
			slinkyv1beta1.ReasonReconciling)
	})
}

// configure creates the ConfigMap that a RestApi needs, in place of the Controller's reconciler.
func (w *world) configure(t *testing.T, controller *slinkyv1beta1.Controller, text string) *corev1.ConfigMap {
	t.Helper()
	kind := slinkyv1beta1.SchemeGroupVersion.WithKind("Controller")
	configuration := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.Configuration(controller.Name), OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(controller, kind),
			},
		},
		Data: map[string]string{"slurm.conf": text},
	}
	w.create(t, configuration)
	return configuration
}

// setDeploymentReady sets the Deployment's status as its controller would with one ready pod.
func (w *world) setDeploymentReady(t *testing.T, deployment *appsv1.Deployment) {
	t.Helper()
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1,
		AvailableReplicas: 1,
	}
	if err := w.Status().Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
}

func newRestAPI() *slinkyv1beta1.RestApi {
	return &slinkyv1beta1.RestApi{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}, Spec: slinkyv1beta1.RestApiSpec{
		ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"},
	}}
}
