package worker

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
)

// An Identity distinguishes a pod of a NodeSet from the others.
type Identity struct {
	// Ordinal is the pod's ordinal; -1 in DaemonSet mode.
	Ordinal int
	// Pod is the pod's name; SlurmName is its host name and the name of its Slurm node.
	Pod, SlurmName string
	// Node is the Kubernetes node that it must run on; empty for any.
	Node string
}

// Numbered returns the identity of the pod with an ordinal. If a Kubernetes node is given, the pod must run on it.
func Numbered(nodeSet *slinkyv1beta1.NodeSet, ordinal int, node string) Identity {
	return Identity{
		Ordinal: ordinal, Pod: naming.WorkerPod(nodeSet, ordinal), SlurmName: naming.WorkerHost(nodeSet, ordinal),
		Node: node,
	}
}

// OnNode returns the identity of the pod for a Kubernetes node, in DaemonSet mode. An annotation of the Kubernetes node
// can override the host name.
func OnNode(nodeSet *slinkyv1beta1.NodeSet, node *corev1.Node) Identity {
	return Identity{
		Ordinal: -1, Pod: naming.NodeWorkerPod(nodeSet, node.Name), Node: node.Name,
		SlurmName: cmp.Or(node.Annotations[slinkyv1beta1.AnnotationHostnameOverride],
			naming.NodeWorkerHost(nodeSet, node.Name)),
	}
}

// Ordinal returns the ordinal of a pod; false for a pod in DaemonSet mode.
func Ordinal(pod *corev1.Pod) (int, bool) {
	ordinal, err := strconv.Atoi(pod.Labels[slinkyv1beta1.LabelPodIndex])
	return ordinal, err == nil
}

// SlurmName returns the name of a pod's Slurm node.
func SlurmName(pod *corev1.Pod) string {
	return cmp.Or(pod.Labels[slinkyv1beta1.LabelPodHostname], pod.Spec.Hostname)
}

// IsNamed reports whether a pod's slurmd can only register as SlurmName: that name is in its arguments, or it is the
// host name and the arguments set none. With hostNetwork and arguments that set none, the name is unknown.
func IsNamed(pod *corev1.Pod) bool {
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		if container.Name != nodeconf.Container {
			continue
		}
		words := slices.Concat(container.Command, container.Args)
		name, given := "", false
		for at, word := range words {
			if value, isName := strings.CutPrefix(word, nodeNameArgs[0]); isName {
				name, given = value, true // the last one counts; the value may be the next word
				if value == "" && at+1 < len(words) {
					name = words[at+1]
				}
			}
		}
		if !given {
			return !pod.Spec.HostNetwork && pod.Spec.Hostname == SlurmName(pod)
		}
		return name == nodeNameArgs[1]
	}
	return false
}

// IsOwn reports whether this operator made a pod, or has taken it over.
func IsOwn(pod *corev1.Pod) bool {
	if pod.Labels[naming.LabelController] != "" || IsExternal(pod) {
		return true
	}
	for i := range pod.Spec.Containers {
		if slices.ContainsFunc(pod.Spec.Containers[i].Env, func(variable corev1.EnvVar) bool {
			return variable.Name == nodeNameEnv
		}) {
			return true // it has lost its labels
		}
	}
	return false
}

// IsExternal reports whether a pod belongs to a slurmctld outside Kubernetes.
func IsExternal(pod *corev1.Pod) bool { return pod.Annotations[annotationExternal] == "true" }

// Pod returns a pod that is made from the template of a revision, which is identified by its hash.
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
	pod.Labels[slinkyv1beta1.LabelPodProtect] = "true" // until its Slurm node is known to be drained and empty
	if identity.Ordinal >= 0 {
		pod.Labels[slinkyv1beta1.LabelPodIndex] = strconv.Itoa(identity.Ordinal)
	}
	pod.Spec.Hostname = identity.SlurmName
	pod.Spec.Volumes = withPVCs(nodeSet, identity, pod.Spec.Volumes)
	if identity.Node != "" {
		requireNode(&pod.Spec, identity.Node)
	}
	return pod
}

// requireNode requires a pod to run on a Kubernetes node. It selects the node by name, so that the scheduler evaluates
// no other. The user's own requirements stay.
func requireNode(spec *corev1.PodSpec, node string) {
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
	// The terms are ORed, so each of them gets the requirement.
	terms := affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchFields = append(terms[i].MatchFields, byName)
	}
}

// PVCs returns the PVCs of a pod, one per template. They have no ownerReferences: the retention policy decides about
// them.
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

// PVCName returns the name of a pod's PVC for a template.
func PVCName(template slinkyv1beta1.VolumeClaimTemplate, pod string) string {
	return template.Metadata.Name + "-" + pod
}

// withPVCs adds a volume for each PVC, and replaces volumes of the same name.
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
