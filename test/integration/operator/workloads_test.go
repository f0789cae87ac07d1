//go:build integration

package operator_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// Workloads simulate the controllers of Deployments and StatefulSets and the kubelets of their pods, one step per round
// and workload, and as late as real ones: a new generation is observed some rounds after the change, the counts of a
// status are those of the round before, a Deployment deletes an old pod when a new one is ready and does not count it
// from then on, and a pod terminates some rounds after its deletion.
type workloads struct {
	world    *world
	nodeName string // the Kubernetes node of all pods

	mu      sync.Mutex
	held    bool
	pending map[string]int // for how many rounds a generation is not observed, or a pod terminates
}

// lateRounds is for how many rounds a generation is not observed, and a pod terminates.
const lateRounds = 3

// startWorkloads runs them until the test ends, with all pods on one Kubernetes node.
func (w *world) startWorkloads(t *testing.T, nodeName string) *workloads {
	t.Helper()
	all := &workloads{world: w, nodeName: nodeName, pending: map[string]int{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	loop, end := w.loop()
	running.Go(func() {
		defer end()
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			loop.beat()
			if err := all.step(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}, 50*time.Millisecond)
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return all
}

// hold stops everything that changes pods, until it is released.
func (l *workloads) hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
}

// step runs one round.
func (l *workloads) step(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return nil
	}
	deployments, sets, pods := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.PodList{}
	if err := errors.Join(l.world.List(ctx, deployments), l.world.List(ctx, sets), l.world.List(ctx, pods)); err != nil {
		return err
	}
	var failures []error
	fail := func(err error) {
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			failures = append(failures, err)
		}
	}
	for i := range deployments.Items {
		fail(l.advanceDeployment(ctx, &deployments.Items[i], pods.Items))
	}
	for i := range sets.Items {
		fail(l.advanceStatefulSet(ctx, &sets.Items[i], pods.Items))
	}
	for i := range pods.Items {
		fail(l.advancePod(ctx, &pods.Items[i]))
	}
	return errors.Join(failures...)
}

// waits reports whether something has not been pending for long enough.
func (l *workloads) waits(what string) bool {
	l.pending[what]++
	return l.pending[what] <= lateRounds
}

// advanceDeployment makes the next step of a rolling update, with one pod more than asked for.
func (l *workloads) advanceDeployment(ctx context.Context, deployment *appsv1.Deployment, pods []corev1.Pod) error {
	if deployment.Status.ObservedGeneration != deployment.Generation &&
		l.waits(fmt.Sprint(deployment.UID, deployment.Generation)) {
		return nil
	}
	revision, wanted := digest(deployment.Spec.Template), int(*deployment.Spec.Replicas)
	owner := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: deployment.Name + "-" + revision, UID: types.UID(revision)},
	}
	var current, old []*corev1.Pod // without those that are being deleted
	is := appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation}
	for i := range pods {
		pod := &pods[i]
		by := metav1.GetControllerOf(pod)
		if by == nil || by.Kind != "ReplicaSet" || !strings.HasPrefix(by.Name, deployment.Name+"-") ||
			pod.DeletionTimestamp != nil {
			continue
		}
		is.Replicas++
		if isReady(pod) {
			is.ReadyReplicas++
		}
		if by.Name == owner.Name {
			is.UpdatedReplicas++
			current = append(current, pod)
		} else {
			old = append(old, pod)
		}
	}
	is.AvailableReplicas = is.ReadyReplicas
	if !equality.Semantic.DeepEqual(is, deployment.Status) {
		deployment.Status = is
		return l.world.Status().Update(ctx, deployment)
	}
	switch all := len(current) + len(old); {
	case len(current) > wanted:
		return l.world.Delete(ctx, current[0])
	case len(old) > 0 && (int(is.ReadyReplicas) > wanted || all > wanted+1 || wanted == 0):
		return l.world.Delete(ctx, old[0])
	case len(current) < wanted && all <= wanted:
		return l.create(ctx, owner.Name+"-"+rand.String(5), &deployment.Spec.Template,
			*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")))
	}
	return nil
}

// advanceStatefulSet creates missing pods and deletes those in excess. It replaces none: the operator does (OnDelete).
func (l *workloads) advanceStatefulSet(ctx context.Context, set *appsv1.StatefulSet, pods []corev1.Pod) error {
	if set.Status.ObservedGeneration != set.Generation && l.waits(fmt.Sprint(set.UID, set.Generation)) {
		return nil
	}
	is := appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, UpdateRevision: digest(set.Spec.Template),
		AvailableReplicas: set.Status.AvailableReplicas,
	}
	existing := map[string]*corev1.Pod{}
	for i := range pods {
		if pod := &pods[i]; metav1.IsControlledBy(pod, set) {
			existing[pod.Name] = pod
			is.Replicas++
		}
	}
	if !equality.Semantic.DeepEqual(is, set.Status) {
		set.Status = is
		return l.world.Status().Update(ctx, set)
	}
	template := set.Spec.Template.DeepCopy()
	template.Labels[appsv1.ControllerRevisionHashLabelKey] = is.UpdateRevision
	for ordinal := range int(*set.Spec.Replicas) {
		name := set.Name + "-" + strconv.Itoa(ordinal)
		if existing[name] == nil {
			return l.create(ctx, name, template, *metav1.NewControllerRef(set,
				appsv1.SchemeGroupVersion.WithKind("StatefulSet")))
		}
		delete(existing, name)
	}
	for _, pod := range existing {
		if pod.DeletionTimestamp == nil {
			return l.world.Delete(ctx, pod)
		}
	}
	return nil
}

// create creates a pod that the kubelet has accepted. Without a Kubernetes node, its deletion would not be graceful.
func (l *workloads) create(ctx context.Context, name string, template *corev1.PodTemplateSpec,
	owner metav1.OwnerReference) error {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Name, pod.OwnerReferences = name, []metav1.OwnerReference{owner}
	pod.Spec.NodeName, pod.Spec.ServiceAccountName = l.nodeName, ""
	return l.world.Create(ctx, pod)
}

// advancePod starts a pod of a workload, or lets it terminate.
func (l *workloads) advancePod(ctx context.Context, pod *corev1.Pod) error {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "ReplicaSet" && owner.Kind != "StatefulSet" {
		return nil
	}
	switch {
	case pod.DeletionTimestamp != nil && l.waits(string(pod.UID)):
		return nil
	case pod.DeletionTimestamp != nil:
		return l.world.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	case pod.Status.Phase != corev1.PodPending:
		return nil
	}
	address := addressOf(pod)
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return l.world.Status().Update(ctx, pod)
}

// slurmctldAddresses are the addresses of slurmctld's pods, by ordinal.
var slurmctldAddresses = []string{slurmctldAddress, "10.0.0.2", "10.0.0.3"}

func addressOf(pod *corev1.Pod) string {
	_, slurmctld := naming.Instance(naming.Slurmctld, pod.Labels)
	ordinal, err := strconv.Atoi(pod.Name[strings.LastIndex(pod.Name, "-")+1:])
	if !slurmctld || err != nil {
		return "10.0.1.1"
	}
	return slurmctldAddresses[ordinal]
}

// digest returns the hash of a pod template.
func digest(template corev1.PodTemplateSpec) string {
	data, err := json.Marshal(template)
	if err != nil {
		panic(err) // it came from JSON
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:5])
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions,
		func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		})
}
