package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/provisioning"
)

func TestProvisioningRequest(t *testing.T) {
	set := elasticSet()
	set.Namespace, set.UID = "slurm", "set-1"
	set.Spec.Elastic.Provisioning = &slinkyv1beta1.ElasticProvisioning{
		ClassName: "check-capacity.autoscaling.x-k8s.io",
		Parameters: map[string]slinkyv1beta1.ProvisioningParameter{
			"noRetry": "true",
		},
	}
	got, err := ProvisioningRequest(set, &plan.Request{
		Name: "gpu-job-7", Class: "check-capacity.autoscaling.x-k8s.io", Job: 7, Pods: 2,
		SlurmNodes: []string{"gpu-0", "gpu-1", "gpu-2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &provisioning.Request{
		ObjectMeta: metav1.ObjectMeta{
			Name: "gpu-job-7", Namespace: "slurm",
			Labels: map[string]string{
				"app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": "gpu",
				"app.kubernetes.io/component": "worker", "app.kubernetes.io/part-of": "slurm",
				"app.kubernetes.io/managed-by": "slurm-operator",
			},
			Annotations: map[string]string{
				"nodeset.slinky.slurm.net/job": "7", "nodeset.slinky.slurm.net/slurm-nodes": "gpu-[0-2]",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "slinky.slurm.net/v1beta1", Kind: "NodeSet", Name: "gpu", UID: "set-1", Controller: new(true),
				BlockOwnerDeletion: new(true),
			}},
		},
		Spec: provisioning.Spec{
			ClassName: "check-capacity.autoscaling.x-k8s.io", Parameters: map[string]string{"noRetry": "true"},
			PodSets: []provisioning.PodSet{{Template: provisioning.Reference{Name: "gpu"}, Count: 2}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPodTemplateHasNoPVCs(t *testing.T) {
	set := elasticSet()
	set.Spec.VolumeClaimTemplates = []slinkyv1beta1.VolumeClaimTemplate{{}}
	set.Spec.VolumeClaimTemplates[0].Metadata.Name = "scratch"
	got, err := PodTemplate(set, &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "slurmd"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"gpu": "h100"}, Volumes: []corev1.Volume{{Name: "config"}, {Name: "scratch"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if *got.Name != "gpu" || got.Template.Labels["app"] != "slurmd" || got.Template.Spec.NodeSelector["gpu"] != "h100" {
		t.Errorf("got PodTemplate %+v", got)
	}
	volumes := got.Template.Spec.Volumes
	if len(volumes) != 2 || *volumes[0].Name != "config" || *volumes[1].Name != "scratch" || volumes[1].EmptyDir == nil {
		t.Errorf("got volumes %+v", volumes)
	}
}

func TestPodUsesRequest(t *testing.T) {
	pod := &corev1.Pod{}
	UseRequest(pod, &plan.Request{Name: "gpu-job-7", Class: "check-capacity.autoscaling.x-k8s.io"})
	want := map[string]string{
		"autoscaling.x-k8s.io/consume-provisioning-request": "gpu-job-7",
		"autoscaling.x-k8s.io/provisioning-class-name":      "check-capacity.autoscaling.x-k8s.io",
	}
	if diff := cmp.Diff(want, pod.Annotations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
