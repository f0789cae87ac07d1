//go:build integration

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

func TestExternalControllerHasNoWorkload(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	key := make([]byte, 32)
	world.slurm.SetKey(key)
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "site"},
		Spec: slinkyv1beta1.ControllerSpec{
			ClusterName: "site", External: true, ExternalConfig: &slinkyv1beta1.ExternalConfig{
				Host: "slurmctld.example.com", Port: 7000,
			},
			SlurmKeyRef: &slinkyv1beta1.SecretKeyReference{Name: "keys", Key: "slurm.key"},
			JWTKeyRef:   &slinkyv1beta1.SecretKeyReference{Name: "keys", Key: "jwt_hs256.key"},
		}}
	world.create(t,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "keys"},
			Data:       map[string][]byte{"slurm.key": key, "jwt_hs256.key": key},
		},
		controller,
		&slinkyv1beta1.RestApi{ObjectMeta: metav1.ObjectMeta{Name: "site"},
			Spec: slinkyv1beta1.RestApiSpec{ControllerRef: slinkyv1beta1.ObjectReference{Name: "site"}}})
	world.eventually(t, "site", controller, func() error {
		return errors.Join(
			condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionTrue,
				slinkyv1beta1.ReasonAsExpected),
			condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionConfigurationApplied,
				metav1.ConditionTrue, slinkyv1beta1.ReasonExternal))
	})
	configuration := &corev1.ConfigMap{}
	world.get(t, "site-config", configuration)
	for _, line := range []string{"ClusterName=site\n", "SlurmctldHost=slurmctld.example.com\n",
		"SlurmctldPort=7000\n"} {
		if !strings.Contains(configuration.Data["slurm.conf"], line) {
			t.Errorf("slurm.conf lacks %q:\n%s", line, configuration.Data["slurm.conf"])
		}
	}
	if strings.Contains(configuration.Data["slurm.conf"], "StateSaveLocation") {
		t.Error("slurm.conf has StateSaveLocation, which only slurmctld needs")
	}
	for name, object := range map[string]client.Object{"site-controller": &appsv1.StatefulSet{},
		"site-auth-slurm": &corev1.Secret{}} {
		if err := world.Get(t.Context(), client.ObjectKey{Name: name}, object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s: %v", object, name, err)
		}
	}
}

// R3: the ServiceMonitor is created and deleted with the setting. In all other tests its CRD is not installed, and that
// is no error.
func TestServiceMonitorFollowsTheSetting(t *testing.T) {
	installServiceMonitors(t)
	world := newWorld(t)
	controller := world.readyController(t)
	monitor := &unstructured.Unstructured{}
	monitor.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor",
	})
	world.patch(t, controller,
		`{"spec":{"metrics":{"enabled":true,"serviceMonitor":{"enabled":true,"labels":{"release":"prometheus"},"interval":"30s"}}}}`)
	world.eventually(t, "slurm-controller", monitor, func() error {
		endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
		if err == nil && (len(endpoints) != 4 || monitor.GetLabels()["release"] != "prometheus") {
			err = fmt.Errorf("labels %v, endpoints %v", monitor.GetLabels(), endpoints)
		}
		return err
	})
	world.patch(t, controller, `{"spec":{"metrics":{"serviceMonitor":{"enabled":false}}}}`)
	world.gone(t, "slurm-controller", monitor)
}

// installServiceMonitors installs a CRD with the name of the Prometheus operator's, for as long as the test runs.
func installServiceMonitors(t *testing.T) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	direct, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "servicemonitors.monitoring.coreos.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "monitoring.coreos.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "servicemonitors", Singular: "servicemonitor", Kind: "ServiceMonitor",
				ListKind: "ServiceMonitorList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", XPreserveUnknownFields: new(true),
					},
				},
			}},
		},
	}
	if err := direct.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := direct.Delete(context.WithoutCancel(t.Context()), crd); err != nil {
			t.Error(err)
		}
	})
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, pollTimeout, true,
		func(ctx context.Context) (bool, error) {
			if err := direct.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return false, err
			}
			for _, condition := range crd.Status.Conditions {
				if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
					return true, nil
				}
			}
			return false, nil
		})
	if err != nil {
		t.Fatal(err)
	}
}
