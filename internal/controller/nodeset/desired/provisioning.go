package desired

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/applyconf"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/hostlist"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/provisioning"
)

// ProvisioningRequest returns the ProvisioningRequest for the pods of a group.
func ProvisioningRequest(set *slinkyv1beta1.NodeSet, request *plan.Request) (*provisioning.Request, error) {
	nodes, err := hostlist.Compress(request.SlurmNodes)
	if err != nil {
		return nil, err
	}
	wanted := &provisioning.Request{
		ObjectMeta: metav1.ObjectMeta{
			Name: request.Name, Namespace: set.Namespace, Labels: naming.Labels(naming.Slurmd, set.Name),
			Annotations: map[string]string{
				provisioning.AnnotationJob:        strconv.FormatInt(request.Job, 10),
				provisioning.AnnotationSlurmNodes: nodes,
			},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(set, slinkyv1beta1.SchemeGroupVersion.WithKind("NodeSet")),
			},
		},
		Spec: provisioning.Spec{
			ClassName: request.Class,
			PodSets: []provisioning.PodSet{{
				Template: provisioning.Reference{Name: PodTemplateName(set)},
				Count:    int32(request.Pods), //nolint:gosec // at most 65536
			}},
		},
	}
	if spec := set.Spec.Elastic.Provisioning; spec != nil && len(spec.Parameters) > 0 {
		wanted.Spec.Parameters = make(map[string]string, len(spec.Parameters))
		for name, value := range spec.Parameters {
			wanted.Spec.Parameters[name] = string(value)
		}
	}
	return wanted, nil
}

// PodTemplateName returns the name of the PodTemplate of a NodeSet.
func PodTemplateName(set *slinkyv1beta1.NodeSet) string { return set.Name }

// PodTemplate returns the PodTemplate that ProvisioningRequests name. It is the same for all pods: volumes of PVCs, of
// which each pod has its own, are empty, and Kubernetes nodes that pods are pinned to are left out.
func PodTemplate(set *slinkyv1beta1.NodeSet,
	template *corev1.PodTemplateSpec) (*applycorev1.PodTemplateApplyConfiguration, error) {
	template = template.DeepCopy()
	for i := range set.Spec.VolumeClaimTemplates {
		name := set.Spec.VolumeClaimTemplates[i].Metadata.Name
		template.Spec.Volumes = append(slices.DeleteFunc(template.Spec.Volumes, func(volume corev1.Volume) bool {
			return volume.Name == name
		}), corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	configuration, err := applyconf.PodTemplate(*template)
	if err != nil {
		return nil, err
	}
	return applycorev1.PodTemplate(PodTemplateName(set), set.Namespace).
		WithLabels(naming.Labels(naming.Slurmd, set.Name)).WithTemplate(configuration), nil
}

// UseRequest makes a new pod use the room of a ProvisioningRequest.
func UseRequest(pod *corev1.Pod, request *plan.Request) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, provisioning.AnnotationRequest, request.Name)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, provisioning.AnnotationClass, request.Class)
}
