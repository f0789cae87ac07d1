//go:build integration

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// Nothing else happens when an object is deleted that all NodeSets of a Controller share.
func TestDeletedServiceOfNodeSetsIsRestored(t *testing.T) {
	t.Parallel()
	w := newNodeWorld(t, newNodeSet(1))
	w.waitUntilIdle(t)
	service := &corev1.Service{}
	w.get(t, naming.WorkerHosts("slurm"), service)
	before := service.UID
	if err := w.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, service.Name, service, func() error {
		if service.UID == before {
			return errors.New("it is being deleted")
		}
		return nil
	})
}

// In DaemonSet mode, the name of a Slurm node does not say which NodeSet it belongs to, and this one has no pod.
func TestRecordWithoutPodIsDeletedAfterMaintenance(t *testing.T) {
	t.Parallel()
	set := newNodeSet(0)
	set.Spec.ScalingMode = slinkyv1beta1.ScalingModeDaemonSet
	w := &nodeWorld{world: newWorld(t), set: set}
	set.Spec.Template.Spec.Raw = fmt.Appendf(nil, `{"nodeSelector":{"world":%q}}`, w.namespace)
	w.start(t)
	first, second := w.kubelet.nodeName, w.namespace+"-second"
	kubernetesNode := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: second, Labels: map[string]string{"world": w.namespace}},
	}
	w.create(t, kubernetesNode)
	w.hasPods(t, "gpu-"+first, "gpu-"+second)
	w.node(t, second, "described", func(node *slurm.Node) bool { return node.Comment != "" })
	w.slurm.SetFlag(second, "MAINTENANCE", true)
	w.patch(t, kubernetesNode, `{"metadata":{"labels":{"world":null}}}`)
	w.hasPods(t, "gpu-"+first)
	w.ready(t)
	w.stopManager() // otherwise it wakes a minute later for its own events
	defer w.run(t, countWrites(server.Config, &w.writes))()
	w.waitUntilIdle(t)
	w.node(t, second, "kept", (*slurm.Node).DrainedByUs)

	w.slurm.SetFlag(second, "MAINTENANCE", false)
	w.until(t, "the deletion of the record", func(ctx context.Context) error {
		if _, err := w.admin.Node(ctx, second); !errors.Is(err, slurm.Rejected) {
			return fmt.Errorf("reading it returns %w", errors.Join(err, errors.New("no refusal")))
		}
		return nil
	})
	if err := w.Delete(t.Context(), kubernetesNode); err != nil {
		t.Fatal(err)
	}
}
