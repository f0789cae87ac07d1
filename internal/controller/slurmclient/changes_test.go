package slurmclient

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// slurmctldPod returns a running pod of slurmctld whose agent authenticates its reports.
func slurmctldPod(controller *slinkyv1beta1.Controller, set *appsv1.StatefulSet, ordinal, ip string) *corev1.Pod {
	template := corev1.PodTemplateSpec{}
	podtemplate.AuthenticateReports(&template)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: controller.Namespace, Name: set.Name + "-" + ordinal, Annotations: template.Annotations,
			Labels: naming.Selector(naming.Slurmctld, controller.Name),
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")),
			},
		},
		Status: corev1.PodStatus{PodIP: ip, Phase: corev1.PodRunning},
	}
}

func TestNodeChangesComeFromTheAgentsOfTheController(t *testing.T) {
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "slurm"}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: naming.Controller("slurm"), UID: "a",
	}}
	other := set.DeepCopy()
	other.UID = "b"
	first, second := slurmctldPod(controller, set, "0", "10.0.0.1"), slurmctldPod(controller, set, "1", "10.0.0.2")
	changed := func(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
		pod = pod.DeepCopy()
		change(pod)
		return pod
	}
	key := bytes.Repeat([]byte{1}, 32)
	for name, test := range map[string]struct {
		pods  []client.Object
		down  string
		asked []string
		fails bool
	}{
		"one":     {pods: []client.Object{first}, asked: []string{"10.0.0.1"}},
		"several": {pods: []client.Object{second, first}, asked: []string{"10.0.0.1"}},
		"the first down": {
			pods: []client.Object{first, second}, down: "10.0.0.1", asked: []string{"10.0.0.1", "10.0.0.2"},
		},
		"all down": {pods: []client.Object{first}, down: "10.0.0.1", asked: []string{"10.0.0.1"}, fails: true},
		"none":     {fails: true},
		"not running": {fails: true, pods: []client.Object{
			changed(first, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodPending }),
		}},
		"an agent of an earlier version": {fails: true, pods: []client.Object{
			changed(first, func(pod *corev1.Pod) { pod.Annotations = nil }),
		}},
		"a pod of another StatefulSet": {fails: true, pods: []client.Object{slurmctldPod(controller, other, "0", "10.0.0.1")}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			reconciler := &Reconciler{
				Client: fake.NewClientBuilder().WithObjects(append(slices.Clone(test.pods), set.DeepCopy())...).Build(),
				NodeChanges: func(_ context.Context, address string, used []byte, since string) (slurm.NodeChanges, error) {
					if asked = append(asked, address); address == test.down {
						return slurm.NodeChanges{}, errors.New("connection refused")
					}
					if !bytes.Equal(used, key) || since != "a-1" {
						t.Errorf("asked since %q with the key %x", since, used)
					}
					return slurm.NodeChanges{Cursor: "a-2", Names: []string{"gpu-3"}}, nil
				},
			}
			changes, err := reconciler.nodeChanges(controller, key)(t.Context(), "a-1")
			if (err != nil) != test.fails || (err == nil) != (changes.Cursor == "a-2") {
				t.Errorf("changes %+v: %v", changes, err)
			}
			if diff := cmp.Diff(test.asked, asked); diff != "" {
				t.Errorf("asked agents (-want +got):\n%s", diff)
			}
		})
	}
}
