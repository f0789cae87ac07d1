//go:build integration

package operator_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// R43: the labels and annotations of a template are also on the workload made from it, until they are removed from the
// template, and without writes in between.
func TestWorkloadsInheritPodMetadata(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	template := slinkyv1beta1.PodTemplate{Metadata: slinkyv1beta1.Metadata{
		Labels:      map[string]slinkyv1beta1.LabelValue{"team": "hpc"},
		Annotations: map[string]string{"example.com/a": "b", "deployment.kubernetes.io/revision": "99"},
	}}
	controller := world.readyControllerWith(t, slinkyv1beta1.ControllerSpec{Template: template}, "slurm-auth-jwths256")
	accounting := newAccounting()
	accounting.Spec.Template = template
	login := &slinkyv1beta1.LoginSet{ObjectMeta: metav1.ObjectMeta{Name: "login"}, Spec: slinkyv1beta1.LoginSetSpec{
		ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}, Template: template,
	}}
	world.create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "database"}, Data: map[string][]byte{"password": []byte("p")},
	}, accounting, login)
	restAPI := &slinkyv1beta1.RestApi{}
	world.get(t, "slurm", restAPI)
	world.patch(t, restAPI,
		`{"spec":{"template":{"metadata":{"labels":{"team":"hpc"},"annotations":{"example.com/a":"b"}}}}}`)

	workloads := map[string]client.Object{
		"slurm-controller": &appsv1.StatefulSet{}, "slurm-accounting": &appsv1.StatefulSet{},
		"slurm-restapi": &appsv1.Deployment{}, "login": &appsv1.Deployment{},
	}
	have := func(label, annotation string) {
		t.Helper()
		for name, workload := range workloads {
			world.eventually(t, name, workload, func() error {
				is, has := workload.GetLabels(), workload.GetAnnotations()
				if is["team"] != label || has["example.com/a"] != annotation ||
					has["deployment.kubernetes.io/revision"] == "99" {
					return fmt.Errorf("its labels are %v, and its annotations %v", is, has)
				}
				return nil
			})
		}
	}
	have("hpc", "b")
	world.waitUntilIdle(t)
	for _, object := range []client.Object{controller, accounting, login, restAPI} {
		world.patch(t, object, `{"spec":{"template":{"metadata":null}}}`)
	}
	have("", "")
}
