package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// Revision stores a template under a name that is made from its content, so that pods can be made from it after the spec
// has moved on. Its label controller-revision-hash is the hash that its pods carry. collisions is mixed into the hash: where the
// name is taken by another template, the next number gives another name. The number of the revision is the caller's to set.
func Revision(nodeSet *slinkyv1beta1.NodeSet, template corev1.PodTemplateSpec, collisions *int32) (*appsv1.ControllerRevision, error) {
	data, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("storing the pod template: %w", err)
	}
	hash := sha256.New()
	hash.Write(data)
	if collisions != nil {
		fmt.Fprintf(hash, "%d", *collisions)
	}
	short := hex.EncodeToString(hash.Sum(nil))[:10]
	labels := naming.Labels(naming.Slurmd, nodeSet.Name)
	labels[appsv1.ControllerRevisionHashLabelKey] = short
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: nodeSet.Name + "-" + short, Namespace: nodeSet.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(nodeSet, slinkyv1beta1.SchemeGroupVersion.WithKind("NodeSet"))},
		},
		Data: runtime.RawExtension{Raw: data},
	}, nil
}

// Hash is the hash that the pods of a revision carry as a label.
func Hash(revision *appsv1.ControllerRevision) string {
	return revision.Labels[appsv1.ControllerRevisionHashLabelKey]
}

// FromRevision is the template that a revision stores.
func FromRevision(revision *appsv1.ControllerRevision) (corev1.PodTemplateSpec, error) {
	var template corev1.PodTemplateSpec
	if err := json.Unmarshal(revision.Data.Raw, &template); err != nil {
		return corev1.PodTemplateSpec{}, fmt.Errorf("reading the pod template of revision %s: %w", revision.Name, err)
	}
	return template, nil
}
