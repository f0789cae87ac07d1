package cluster

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// ranWith returns the StatefulSet of a slurmctld that has run with its state on a PVC.
func ranWith(claim string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationKeepsState: "true"}},
	}
	set.Spec.Template.Annotations = map[string]string{naming.AnnotationConfiguration: "digest"}
	set.Spec.Template.Spec.Volumes = []corev1.Volume{onClaim(claim)}
	return set
}

// ranWithout returns the StatefulSet of a slurmctld that has run without a PVC.
func ranWithout() *appsv1.StatefulSet {
	set := ranWith("")
	set.Annotations, set.Spec.Template.Spec.Volumes = nil, nil
	return set
}

func onClaim(claim string) corev1.Volume {
	return corev1.Volume{Name: volumeState, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}
}

// ranElsewhere makes slurmctld one that was external, with so many slurmds.
func ranElsewhere(slurmds int32) func(*scope) {
	return func(s *scope) {
		s.promoted = &promoted{hash: "clients", files: map[string]string{slurmconf.FileName: "ClusterName=ns_slurm\n"}}
		s.nodeSets = []slinkyv1beta1.NodeSet{{Status: slinkyv1beta1.NodeSetStatus{ReadyReplicas: slurmds}}}
	}
}

// Only a PVC that a slurmctld has run with can be lost: the first one is created, and so is one that the spec newly
// asks for.
func TestUnusedStateClaimIsNotReportedLost(t *testing.T) {
	for name, change := range map[string]func(*scope){
		"before slurmctld first ran": func(*scope) {},
		"when persistence is enabled while no job runs": func(s *scope) {
			s.statefulSet, s.jobFree = ranWithout(), true
		},
		"when it was on another PVC": func(s *scope) { s.statefulSet = ranWith("other") },
		"when persistence is disabled while no job runs": func(s *scope) {
			s.statefulSet, s.jobFree = ranWith("slurm-controller-state"), true
			s.controller.Spec.Persistence.Enabled = new(false)
		},
		"when slurmctld is external now": func(s *scope) {
			s.statefulSet = ranWith("slurm-controller-state")
			s.controller.Spec.External = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			if problem := stateProblem(newScope(promoteWith("good", "old"), change)); problem != nil {
				t.Error(problem.Message)
			}
		})
	}
}

// A slurmctld that has run on a PVC is never started without its state again, whichever PVC that is; no pod is replaced
// for that.
func TestStateIsRequiredAfterFirstStart(t *testing.T) {
	runs := func(volume corev1.Volume, running string) func(*scope) {
		return func(s *scope) {
			s.pods = []corev1.Pod{
				{
					ObjectMeta: metav1.ObjectMeta{Name: "slurm-controller-0"},
					Spec:       corev1.PodSpec{Volumes: []corev1.Volume{volume}},
				},
			}
			s.agents["slurm-controller-0"] = agent.Report{RunningHash: running}
		}
	}
	tests := map[string]struct {
		change func(*scope)
		want   bool
	}{
		"before slurmctld runs":                         {func(*scope) {}, false},
		"while it starts":                               {runs(onClaim("c"), ""), false},
		"when it runs":                                  {runs(onClaim("c"), "hash"), true},
		"when it runs without a PVC":                    {runs(corev1.Volume{Name: volumeState}, "hash"), false},
		"when it has run":                               {func(s *scope) { s.statefulSet = ranWith("c") }, true},
		"when it has run elsewhere":                     {ranElsewhere(1), true},
		"when it has run elsewhere, and no slurmd runs": {ranElsewhere(0), false},
		"when the spec names another PVC": {func(s *scope) {
			s.statefulSet, s.controller.Spec.Persistence.ExistingClaim = ranWith("c"), "other"
		}, true},
		"when persistence is disabled": {func(s *scope) {
			s.statefulSet, s.controller.Spec.Persistence.Enabled = ranWith("c"), new(false)
		}, false},
		"when the user set the command": {func(s *scope) {
			s.statefulSet, s.controller.Spec.Slurmctld.Raw = ranWith("c"), []byte(`{"command":["mine"]}`)
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := newScope(promoteWith("good", "new"), test.change)
			got, err := statefulSet(set, &plan{image: "new"})
			if err != nil {
				t.Fatal(err)
			}
			var args []string
			for _, container := range got.Spec.Template.Spec.Containers {
				if *container.Name == containerSlurmctld {
					args = container.Args
				}
			}
			if expects := len(args) > 2 && args[2] == "--expect-state=/var/spool/slurmctld"; expects != test.want {
				text, _ := json.Marshal(args)
				t.Errorf("slurmctld runs with %s", text)
			}
		})
	}
	stamp := func(changes ...func(*scope)) string {
		set, err := statefulSet(newScope(append(changes, promoteWith("good", "new"))...), &plan{image: "new"})
		if err != nil {
			t.Fatal(err)
		}
		return set.Spec.Template.Annotations["slinky.slurm.net/template-hash"]
	}
	if before, after := stamp(), stamp(runs(onClaim("c"), "hash")); before == "" || before != after {
		t.Errorf("the template's hash changed from %q to %q", before, after)
	}
}
