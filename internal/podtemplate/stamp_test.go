package podtemplate_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
)

func TestOutdated(t *testing.T) {
	const helper = "reconfigure"
	stamped := func(change func(*corev1.PodTemplateSpec)) corev1.PodTemplateSpec {
		template := own()
		change(&template)
		if err := podtemplate.Stamp(&template, helper); err != nil {
			t.Fatal(err)
		}
		return template
	}
	authenticated := func(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
		podtemplate.AuthenticateReports(&template)
		return template
	}
	unchanged := func(*corev1.PodTemplateSpec) {}
	tests := map[string]struct {
		from, to corev1.PodTemplateSpec
		pod      func(*corev1.Pod)
		set      func(*appsv1.StatefulSet)
		want     bool
	}{
		"same template": {from: stamped(unchanged), to: stamped(unchanged)},
		"new helper image is ignored": {
			from: stamped(unchanged),
			to:   stamped(func(template *corev1.PodTemplateSpec) { template.Spec.InitContainers[0].Image = "newer" }),
		},
		"helper that authenticates reports is ignored": {
			from: stamped(unchanged), to: authenticated(stamped(unchanged)),
		},
		"new daemon image": {
			from: stamped(unchanged),
			to:   stamped(func(template *corev1.PodTemplateSpec) { template.Spec.Containers[0].Image = "newer" }),
			want: true,
		},
		"changed annotation": {
			from: stamped(unchanged),
			to:   stamped(func(template *corev1.PodTemplateSpec) { template.Annotations["ours"] = "2" }), want: true,
		},
		"pod without a stamp": {from: own(), to: stamped(unchanged), want: true},
		"kubectl rollout restart": {
			from: stamped(unchanged), to: stamped(unchanged), want: true,
			set: func(set *appsv1.StatefulSet) {
				set.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "2026-01-01T00:00:00Z"
			},
		},
		"pod of the current revision, with other annotations": {
			from: own(), to: stamped(unchanged),
			pod: func(pod *corev1.Pod) { pod.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "new"} },
		},
		"template not yet observed by the StatefulSet controller": {
			from: stamped(unchanged),
			to:   stamped(func(template *corev1.PodTemplateSpec) { template.Spec.Containers[0].Image = "newer" }),
			set:  func(set *appsv1.StatefulSet) { set.Generation++ },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{appsv1.ControllerRevisionHashLabelKey: "old"},
				Annotations: test.from.Annotations,
			}}
			set := &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: appsv1.StatefulSetSpec{Template: test.to},
				Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, UpdateRevision: "new"},
			}
			if test.pod != nil {
				test.pod(pod)
			}
			if test.set != nil {
				test.set(set)
			}
			if got := podtemplate.Outdated(pod, set); got != test.want {
				t.Errorf("Outdated() = %v", got)
			}
		})
	}
}
