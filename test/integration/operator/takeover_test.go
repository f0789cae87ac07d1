//go:build integration

package operator_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmuser"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
)

const foreignConf = "ClusterName=moved\nAuthType=auth/slurm\nCredType=cred/slurm\nSlurmdSpoolDir=/var/spool/slurmd\n" +
	"StateSaveLocation=/var/spool/slurmctld\nProctrackType=proctrack/linuxproc\n" +
	"NodeSet=slinky Feature=slinky\nPartitionName=slinky Nodes=slinky State=UP\n"

// foreignCluster creates what another operator has made for a Controller: all but the StatefulSet, which only a garbage
// collector can delete without its pod.
func (w *world) foreignCluster(t *testing.T) *slinkyv1beta1.Controller {
	t.Helper()
	files := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "slurm-config"},
		Data:       map[string]string{"slurm.conf": foreignConf, "other.conf": "x"},
	}
	w.create(t, files,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"slurm.key": "s", "jwt.key": "j"},
		},
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "statesave-slurm-controller-0"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				},
			},
		},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name:   "slurm-controller-0",
				Labels: map[string]string{"app.kubernetes.io/name": "slurmctld", "app.kubernetes.io/instance": "slurm"},
			},
			Spec: corev1.PodSpec{
				SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(401)), RunAsGroup: new(int64(401))},
				Containers:      []corev1.Container{{Name: "slurmctld", Image: "other"}},
			},
		})
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}}
	controller.Spec.ClusterName = "moved"
	controller.Spec.SlurmKeyRef = &slinkyv1beta1.SecretKeyReference{Name: "keys", Key: "slurm.key"}
	controller.Spec.JWTKeyRef = &slinkyv1beta1.SecretKeyReference{Name: "keys", Key: "jwt.key"}
	if err := w.Create(t.Context(), controller); err != nil {
		t.Fatal(err)
	}
	w.patch(t, files, `{"metadata":{"ownerReferences":[{"apiVersion":"slinky.slurm.net/v1beta1","kind":"Controller",`+
		`"name":"slurm","uid":%q,"controller":true}]}}`, controller.UID)
	return controller
}

// The old slurmctld runs on while Kubernetes would not accept a Service of the new one.
func TestOldSlurmctldRunsUntilServicesAreAccepted(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.foreignCluster(t)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "slurm-controller-0"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 6817}}},
	}
	world.create(t, service)
	world.patch(t, controller, `{"metadata":{"annotations":{%q:"true"}}}`, slinkyv1beta1.AnnotationTakeOver)
	world.finishValidation(t, validation.Report{
		Outcome: validation.Accepted, SlurmVersion: "26.05.5", SlurmUser: &slurmuser.User{UID: 401, GID: 401},
	})
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionFalse,
			slinkyv1beta1.ReasonInvalidSpec)
	})
	pod := &corev1.Pod{}
	world.get(t, "slurm-controller-0", pod)
	if pod.DeletionTimestamp != nil || len(pod.Annotations) > 0 {
		t.Errorf("the pod of the old slurmctld has been changed: %v", pod.ObjectMeta)
	}
	if err := world.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	world.patch(t, controller, `{"metadata":{"labels":{"event":"true"}}}`) // the next attempt is a minute later
	world.gone(t, "slurm-controller-0", pod)
}

// A cluster of another operator is taken over when the user asks for it, step by step.
func TestClusterOfAnotherOperatorIsTakenOver(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.foreignCluster(t)
	world.eventually(t, "slurm", controller, func() error {
		return condition(controller, controller.Status.Conditions, slinkyv1beta1.ConditionReady, metav1.ConditionFalse,
			slinkyv1beta1.ReasonNotTakenOver)
	})
	world.waitUntilIdle(t)
	files, pod := &corev1.ConfigMap{}, &corev1.Pod{}
	world.get(t, "slurm-config", files)
	world.get(t, "slurm-controller-0", pod)
	if files.Data["slurm.conf"] != foreignConf || len(pod.Annotations) > 0 || controller.Status.SlurmUser != nil {
		t.Errorf("the cluster was changed before the user asked for it: %v, %v, %v", files.Data, pod.Annotations,
			controller.Status.SlurmUser)
	}
	world.gone(t, "slurm-controller", &corev1.Service{})

	world.patch(t, controller, `{"metadata":{"annotations":{%q:"true"}}}`, slinkyv1beta1.AnnotationTakeOver)
	world.finishValidation(t, validation.Report{
		Outcome: validation.Accepted, SlurmVersion: "26.05.5", SlurmUser: &slurmuser.User{UID: 401, GID: 401},
	})
	world.gone(t, "slurm-controller-0", pod)
	set := &appsv1.StatefulSet{}
	world.eventually(t, "slurm-controller", set, func() error { return nil })
	world.get(t, "slurm-config", files)
	if _, left := files.Data["other.conf"]; left || !strings.Contains(files.Data["slurm.conf"], "PartitionName=slinky") {
		t.Errorf("the configuration is %v", files.Data)
	}
	for _, volume := range set.Spec.Template.Spec.Volumes {
		if claim := volume.PersistentVolumeClaim; claim != nil && claim.ClaimName != "statesave-slurm-controller-0" {
			t.Errorf("slurmctld gets the PVC %s", claim.ClaimName)
		}
	}
	if user := set.Spec.Template.Spec.SecurityContext.RunAsUser; *user != 401 {
		t.Errorf("slurmctld runs as %d", *user)
	}
	if !strings.Contains(strings.Join(set.Spec.Template.Spec.Containers[0].Args, " "), "--expect-state") {
		t.Error("slurmctld would start without its state")
	}
	world.eventually(t, "slurm", controller, func() error {
		if controller.Status.SlurmUser == nil {
			return errors.New("other controllers do not know that slurmctld is taken over")
		}
		return nil
	})
}

// A spec that gets a mistake when the old slurmctld is gone does not leave the cluster without one.
func TestTakeOverEndsDespiteMistake(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller, pod := world.foreignCluster(t), &corev1.Pod{}
	world.get(t, "slurm-controller-0", pod)
	world.patch(t, pod, `{"metadata":{"finalizers":["test.example/exits"]}}`)
	world.patch(t, controller, `{"metadata":{"annotations":{%q:"true"}}}`, slinkyv1beta1.AnnotationTakeOver)
	world.finishValidation(t, validation.Report{
		Outcome: validation.Accepted, SlurmVersion: "26.05.5", SlurmUser: &slurmuser.User{UID: 401, GID: 401},
	})
	world.eventually(t, "slurm-controller-0", pod, func() error {
		if pod.DeletionTimestamp == nil {
			return errors.New("the old slurmctld runs")
		}
		return nil
	})
	world.patch(t, controller, `{"spec":{"extraConf":"SlurmUser=nobody","persistence":{"enabled":false}}}`)
	world.patch(t, pod, `{"metadata":{"finalizers":null}}`)
	set := &appsv1.StatefulSet{}
	world.eventually(t, "slurm-controller", set, func() error { return nil })
	uses := slices.ContainsFunc(set.Spec.Template.Spec.Volumes, func(volume corev1.Volume) bool {
		claim := volume.PersistentVolumeClaim
		return claim != nil && claim.ClaimName == "statesave-slurm-controller-0"
	})
	if security := set.Spec.Template.Spec.SecurityContext; !uses || security == nil || *security.RunAsUser != 401 {
		t.Errorf("slurmctld starts as %v with the volumes %v", security, set.Spec.Template.Spec.Volumes)
	}
}
