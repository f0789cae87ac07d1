package simulated

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func TestPodsCountsCreatedAndDeletedPods(t *testing.T) {
	client := fake.NewClientset(newPod("first", corev1.ConditionTrue))
	cluster := &Cluster{Client: client}
	api := client.CoreV1().Pods(corev1.NamespaceDefault)
	pods := cluster.Pods(t, corev1.NamespaceDefault, "")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	for _, step := range []struct {
		name string
		do   func() error
		want PodCount
	}{
		{"one existed before", func() error { return nil }, PodCount{Created: 1, Present: 1, Ready: 1}},
		{"another is created", func() error {
			_, err := api.Create(ctx, newPod("second", corev1.ConditionFalse), metav1.CreateOptions{})
			return err
		}, PodCount{Created: 2, Present: 2, Ready: 1}},
		{"it becomes ready", func() error {
			_, err := api.Update(ctx, newPod("second", corev1.ConditionTrue), metav1.UpdateOptions{})
			return err
		}, PodCount{Created: 2, Present: 2, Ready: 2}},
		{"it is no longer ready", func() error {
			_, err := api.Update(ctx, newPod("second", corev1.ConditionFalse), metav1.UpdateOptions{})
			return err
		}, PodCount{Created: 2, Present: 2, Ready: 1}},
		{"the first is deleted", func() error {
			return api.Delete(ctx, "first", metav1.DeleteOptions{})
		}, PodCount{Created: 2, Present: 1, Ready: 0}},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if err := pods.Wait(ctx, func(count PodCount) bool { return count == step.want }); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
	}

	canceled, cancelNow := context.WithCancel(ctx)
	cancelNow()
	if err := pods.Wait(canceled, func(count PodCount) bool { return count.Present == 0 }); !errors.Is(err,
		context.Canceled) {
		t.Errorf("a canceled wait returned %v", err)
	}
}

func newPod(name string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceDefault, UID: types.UID(name)},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}
