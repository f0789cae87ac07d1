package simulated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
)

const (
	parallelCreates    = 16
	defaultPodsPerNode = 250
)

// addNodes creates the nodes and waits until pods can be scheduled to all of them.
func (c *Cluster) addNodes(ctx context.Context, options Options) error {
	failures := make([]error, options.Nodes)
	workqueue.ParallelizeUntil(ctx, parallelCreates, options.Nodes, func(i int) {
		node := newNode(fmt.Sprintf("node-%d", i+1), cmp.Or(options.PodsPerNode, defaultPodsPerNode))
		_, failures[i] = c.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	})
	if err := errors.Join(failures...); err != nil {
		return err
	}
	ready := 0
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		ready = len(slices.DeleteFunc(nodes.Items, func(node corev1.Node) bool { return !isReady(node) }))
		return ready == options.Nodes && c.canRunPods(ctx), nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d nodes are ready: %w", ready, options.Nodes, err)
	}
	return nil
}

func newNode(name string, pods int) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("256"),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   *resource.NewQuantity(int64(pods), resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}

// isReady reports whether a node is ready and its startup taints are removed.
func isReady(node corev1.Node) bool {
	return len(node.Spec.Taints) == 0 &&
		slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
			return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
		})
}
