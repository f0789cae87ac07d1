package slurmcli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
)

// newPod returns a pod of a daemon that runs, and is ready or not.
func newPod(daemon naming.Daemon, instance, name string, ready bool) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: name, Labels: naming.Labels(daemon, instance)},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if ready {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return pod
}

// ending returns a pod that is being deleted.
func ending(pod corev1.Pod) corev1.Pod {
	pod.DeletionTimestamp = &metav1.Time{}
	return pod
}

func TestPodForSlurmsCommandsIsChosen(t *testing.T) {
	type list = []corev1.Pod
	slurmctld := func(name string, ready bool) corev1.Pod { return newPod(naming.Slurmctld, "slurm", name, ready) }
	login := func(set, name string, ready bool) corev1.Pod { return newPod(naming.Login, set, name, ready) }
	slurmd := func(name string, ready bool) corev1.Pod { return newPod(naming.Slurmd, "gpu", name, ready) }
	sets := []string{"login"}
	for name, test := range map[string]struct {
		external bool
		among    Candidates
		pod      string
		daemon   naming.Daemon
	}{
		"the active slurmctld": {
			false, Candidates{Slurmctld: list{slurmctld("slurm-controller-0", false), slurmctld("slurm-controller-1", true)}},
			"slurm-controller-1", naming.Slurmctld,
		},
		"a slurmctld that is not ready, if no other runs": {
			false, Candidates{Slurmctld: list{slurmctld("slurm-controller-0", false)}}, "slurm-controller-0", naming.Slurmctld,
		},
		"never another pod, if slurmctld is not external": {
			false, Candidates{Login: list{login("login", "login-a", true)}, LoginSets: sets}, "", "",
		},
		"external: a ready login pod before a slurmd pod": {
			true, Candidates{
				Login: list{login("login", "login-b", false), login("login", "login-c", true)}, LoginSets: sets,
				Slurmd: list{slurmd("gpu-0", true)},
			}, "login-c", naming.Login,
		},
		"external: a ready slurmd pod before a login pod that is not": {
			true, Candidates{
				Login: list{login("login", "login-b", false)}, LoginSets: sets,
				Slurmd: list{slurmd("gpu-1", true), slurmd("gpu-0", true)},
			}, "gpu-0", naming.Slurmd,
		},
		"external: a login pod that is not ready before such a slurmd pod": {
			true, Candidates{
				Login: list{login("login", "login-b", false)}, LoginSets: sets, Slurmd: list{slurmd("gpu-0", false)},
			}, "login-b", naming.Login,
		},
		"external: no login pod of another cluster": {
			true, Candidates{
				Login: list{login("other", "other-a", true)}, LoginSets: sets, Slurmd: list{slurmd("gpu-0", false)},
			}, "gpu-0", naming.Slurmd,
		},
		"external: no pod that is being deleted": {
			true, Candidates{Login: list{ending(login("login", "login-a", true))}, LoginSets: sets}, "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "slurm"}}
			controller.Spec.External = test.external
			want := kube.Container{Namespace: "slurm", Pod: test.pod, Container: string(test.daemon)}
			got, err := Choose(controller, &test.among)
			switch {
			case test.pod == "" && (err == nil || !strings.Contains(err.Error(), "of the Controller slurm")):
				t.Errorf("%+v, %v", got, err)
			case test.pod != "" && (err != nil || got != want):
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		})
	}
}
