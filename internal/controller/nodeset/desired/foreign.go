package desired

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// PodLabels returns the merge patch that gives a pod of another operator the labels of this operator's pods. Labels
// that tell the pod apart from others stay if it has them, as do those by which the other operator may select it.
func PodLabels(set *slinkyv1beta1.NodeSet, pod *corev1.Pod) []byte {
	labels := naming.Labels(naming.Slurmd, set.Name)
	for key := range labels {
		if value, found := pod.Labels[key]; found && !naming.IsSelected(key) {
			labels[key] = value
		}
	}
	labels[naming.LabelController] = set.Spec.ControllerRef.Name
	labels[slinkyv1beta1.LabelPodProtect] = "true" // until its Slurm node is known to be drained and empty
	identity := map[string]string{
		slinkyv1beta1.LabelPodName:     pod.Name,
		slinkyv1beta1.LabelPodHostname: cmp.Or(pod.Spec.Hostname, pod.Name),
		slinkyv1beta1.LabelScalingMode: string(cmp.Or(set.Spec.ScalingMode, slinkyv1beta1.ScalingModeStatefulSet)),
	}
	if ordinal, numbered := ordinalOf(set, pod); numbered {
		identity[slinkyv1beta1.LabelPodIndex] = ordinal
	}
	for key, value := range identity {
		labels[key] = cmp.Or(pod.Labels[key], value)
	}
	return encode(map[string]any{"metadata": map[string]any{"uid": pod.UID, "labels": labels}})
}

// ordinalOf returns the ordinal at the end of a pod's name, unless the NodeSet is in DaemonSet mode.
func ordinalOf(set *slinkyv1beta1.NodeSet, pod *corev1.Pod) (string, bool) {
	if set.Spec.ScalingMode == slinkyv1beta1.ScalingModeDaemonSet {
		return "", false
	}
	ordinal, err := strconv.Atoi(pod.Name[strings.LastIndex(pod.Name, "-")+1:])
	return strconv.Itoa(ordinal), err == nil
}
