package worker

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
)

// An Identity is what tells one pod of a NodeSet from the others.
type Identity struct {
	// Ordinal is the number of the pod; -1 in DaemonSet mode.
	Ordinal int
	// Pod is the name of the pod, and SlurmName its host name and the name of its Slurm node.
	Pod, SlurmName string
	// Node is the Kubernetes node that it has to be on; any when empty.
	Node string
}

// Numbered is the identity of the pod with an ordinal. It has to be on a Kubernetes node unless that is empty.
func Numbered(nodeSet *slinkyv1beta1.NodeSet, ordinal int, node string) Identity {
	return Identity{
		Ordinal: ordinal, Pod: naming.WorkerPod(nodeSet, ordinal), SlurmName: naming.WorkerHost(nodeSet, ordinal),
		Node: node,
	}
}

// OnNode is the identity of the pod for a Kubernetes node, in DaemonSet mode. The node's annotation may give its name.
func OnNode(nodeSet *slinkyv1beta1.NodeSet, node *corev1.Node) Identity {
	return Identity{
		Ordinal: -1, Pod: naming.NodeWorkerPod(nodeSet, node.Name), Node: node.Name,
		SlurmName: cmp.Or(node.Annotations[slinkyv1beta1.AnnotationHostnameOverride],
			naming.NodeWorkerHost(nodeSet, node.Name)),
	}
}

// Ordinal is the number of a pod. It returns false for a pod in DaemonSet mode.
func Ordinal(pod *corev1.Pod) (int, bool) {
	ordinal, err := strconv.Atoi(pod.Labels[slinkyv1beta1.LabelPodIndex])
	return ordinal, err == nil
}

// SlurmName is the name of the Slurm node that a pod is.
func SlurmName(pod *corev1.Pod) string {
	return cmp.Or(pod.Labels[slinkyv1beta1.LabelPodHostname], pod.Spec.Hostname)
}

// IsNamed reports whether a pod's slurmd can have registered under no other name than SlurmName: because it is told so,
// or because that is its host name and nothing else is said. Who replaces the arguments of a pod on the host's network
// leaves that open.
func IsNamed(pod *corev1.Pod) bool {
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		if container.Name != nodeconf.Container {
			continue
		}
		words := slices.Concat(container.Command, container.Args)
		at := slices.Index(words, nodeNameArgs[0])
		if at < 0 {
			return !pod.Spec.HostNetwork && pod.Spec.Hostname == SlurmName(pod)
		}
		return at+1 < len(words) && words[at+1] == nodeNameArgs[1]
	}
	return false
}

// IsExternal reports whether a pod belongs to a slurmctld outside Kubernetes.
func IsExternal(pod *corev1.Pod) bool { return pod.Annotations[annotationExternal] == "true" }

// Pod makes one pod from a template, whose revision has a hash.
func Pod(nodeSet *slinkyv1beta1.NodeSet, template corev1.PodTemplateSpec, hash string, identity Identity) *corev1.Pod {
	template = *template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: identity.Pod, Namespace: nodeSet.Namespace, Labels: map[string]string{},
			Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(nodeSet, slinkyv1beta1.SchemeGroupVersion.WithKind("NodeSet")),
			},
		},
		Spec: template.Spec,
	}
	maps.Copy(pod.Labels, template.Labels)
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = hash
	pod.Labels[slinkyv1beta1.LabelPodName] = identity.Pod
	pod.Labels[slinkyv1beta1.LabelPodHostname] = identity.SlurmName
	pod.Labels[slinkyv1beta1.LabelPodProtect] = "true" // until its node is known to be closed and empty
	if identity.Ordinal >= 0 {
		pod.Labels[slinkyv1beta1.LabelPodIndex] = strconv.Itoa(identity.Ordinal)
	}
	pod.Spec.Hostname = identity.SlurmName
	pod.Spec.Volumes = withPVCs(nodeSet, identity, pod.Spec.Volumes)
	if identity.Node != "" {
		place(&pod.Spec, identity.Node)
	}
	return pod
}

// place binds a pod to a Kubernetes node by its name, which lets the scheduler look at that node alone. Whatever else
// the user asks of the node has to hold too.
func place(spec *corev1.PodSpec, node string) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := spec.Affinity.NodeAffinity
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 1),
		}
	}
	byName := corev1.NodeSelectorRequirement{
		Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
	}
	// One of the terms has to hold.
	terms := affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchFields = append(terms[i].MatchFields, byName)
	}
}

// PVCs returns the PVCs that a pod needs, one for each template, without ownerReferences: those follow the retention
// policy.
func PVCs(nodeSet *slinkyv1beta1.NodeSet, pod string) []*corev1.PersistentVolumeClaim {
	var pvcs []*corev1.PersistentVolumeClaim
	for _, template := range nodeSet.Spec.VolumeClaimTemplates {
		labels := naming.Merge(template.Metadata.Labels, naming.Labels(naming.Slurmd, nodeSet.Name))
		labels[slinkyv1beta1.LabelPodName] = pod
		pvcs = append(pvcs, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: PVCName(template, pod), Namespace: nodeSet.Namespace, Labels: labels,
				Annotations: maps.Clone(template.Metadata.Annotations),
			},
			Spec: *template.Spec.DeepCopy(),
		})
	}
	return pvcs
}

// PVCName returns the name of the PVC of a pod for a template.
func PVCName(template slinkyv1beta1.VolumeClaimTemplate, pod string) string {
	return template.Metadata.Name + "-" + pod
}

// withPVCs adds a volume for each PVC, and replaces those of the same name.
func withPVCs(nodeSet *slinkyv1beta1.NodeSet, identity Identity, volumes []corev1.Volume) []corev1.Volume {
	for _, template := range nodeSet.Spec.VolumeClaimTemplates {
		name := template.Metadata.Name
		volumes = slices.DeleteFunc(volumes, func(volume corev1.Volume) bool { return volume.Name == name })
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: PVCName(template, identity.Pod),
			},
		}})
	}
	return volumes
}
