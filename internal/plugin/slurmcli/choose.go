package slurmcli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
)

// Candidates are the pods of a cluster in which Slurm's commands may run.
type Candidates struct {
	// Slurmctld are the pods of slurmctld; there are none if it is external.
	Slurmctld []corev1.Pod
	// Login are login pods, of any cluster in the namespace, and LoginSets the names of those of this cluster.
	Login     []corev1.Pod
	LoginSets []string
	// Slurmd are slurmd pods of the cluster.
	Slurmd []corev1.Pod
}

// Choose returns the container in which Slurm's commands run with the rights of an administrator: that of the active
// slurmctld. A standby is not ready, and could run them too.
//
// An external slurmctld has no pod. Its cluster may have login pods and slurmd pods, whose containers run as root, who
// administers Slurm. A login pod is preferred, because commands of Slurm are what it is for. slurmrestd has the
// commands too, and neither a key nor a user of its own, so it does not qualify.
func Choose(controller *slinkyv1beta1.Controller, among *Candidates) (kube.Container, error) {
	if !controller.Spec.External {
		if pod := best(among.Slurmctld); pod != nil {
			return container(pod, naming.Slurmctld), nil
		}
		return kube.Container{}, fmt.Errorf("no slurmctld pod of the Controller %s runs in the namespace %s; "+
			"see kubectl slurm status", controller.Name, controller.Namespace)
	}
	login, slurmd := among.login(), best(among.Slurmd)
	switch {
	case login != nil && (kube.IsReady(login) || slurmd == nil || !kube.IsReady(slurmd)):
		return container(login, naming.Login), nil
	case slurmd != nil:
		return container(slurmd, naming.Slurmd), nil
	default:
		return kube.Container{}, fmt.Errorf("the slurmctld of the Controller %s is external, and no login pod or slurmd pod "+
			"of it runs in the namespace %s, in which Slurm's commands could run; run them where slurmctld runs, or create "+
			"a LoginSet", controller.Name, controller.Namespace)
	}
}

// login returns the best login pod of the cluster.
func (c *Candidates) login() *corev1.Pod {
	return best(slices.DeleteFunc(slices.Clone(c.Login), func(pod corev1.Pod) bool {
		set, _ := naming.Instance(naming.Login, pod.Labels)
		return !slices.Contains(c.LoginSets, set)
	}))
}

func container(pod *corev1.Pod, daemon naming.Daemon) kube.Container {
	return kube.Container{Namespace: pod.Namespace, Pod: pod.Name, Container: string(daemon)}
}

// best returns a pod that runs, if there is one: a ready one, and the first by name.
func best(pods []corev1.Pod) *corev1.Pod {
	var found *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		switch {
		case !runs(pod):
		case found == nil, kube.IsReady(pod) && !kube.IsReady(found),
			kube.IsReady(pod) == kube.IsReady(found) && pod.Name < found.Name:
			found = pod
		}
	}
	return found
}

func runs(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
}

// Find reads the pods of a cluster in which Slurm's commands may run, and chooses one.
func Find(ctx context.Context, client *kube.Client, controller *slinkyv1beta1.Controller) (kube.Container, error) {
	var among Candidates
	var err error
	if !controller.Spec.External {
		among.Slurmctld, err = pods(ctx, client, controller, naming.Selector(naming.Slurmctld, controller.Name))
		if err != nil {
			return kube.Container{}, err
		}
		return Choose(controller, &among)
	}
	among.LoginSets, err = loginSets(ctx, client, controller)
	if _, forbidden := errors.AsType[*kube.Forbidden](err); err != nil && !forbidden {
		return kube.Container{}, err
	}
	if len(among.LoginSets) > 0 {
		if among.Login, err = pods(ctx, client, controller, naming.DaemonSelector(naming.Login)); err != nil {
			return kube.Container{}, err
		}
	}
	if login := among.login(); login == nil || !kube.IsReady(login) {
		among.Slurmd, err = pods(ctx, client, controller, naming.WorkerSelector(controller.Name))
		if err != nil {
			return kube.Container{}, err
		}
	}
	return Choose(controller, &among)
}

// maxCandidates bounds a list of pods of which one is needed.
const maxCandidates = 100

func pods(
	ctx context.Context, client *kube.Client, controller *slinkyv1beta1.Controller, selector map[string]string,
) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := client.List(ctx, kube.Pods, controller.Namespace, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(selector).String(), Limit: maxCandidates,
	}, &list)
	return list.Items, err
}

// loginSets returns the names of the LoginSets of a Controller.
func loginSets(ctx context.Context, client *kube.Client, controller *slinkyv1beta1.Controller) ([]string, error) {
	var list slinkyv1beta1.LoginSetList
	if err := client.List(ctx, kube.LoginSets, controller.Namespace, metav1.ListOptions{}, &list); err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		if list.Items[i].Spec.ControllerRef.Name == controller.Name {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, nil
}
