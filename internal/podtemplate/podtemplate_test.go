package podtemplate_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/applyconf"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
)

// own returns a template of the operator.
func own() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"app.kubernetes.io/name": "slurmctld"},
			Annotations: map[string]string{"ours": "1"},
		},
		Spec: corev1.PodSpec{
			EnableServiceLinks: new(false),
			InitContainers:     []corev1.Container{{Name: "reconfigure", Image: "i"}},
			Containers: []corev1.Container{{
				Name: "slurmctld", Image: "i", Command: []string{"start", "--"}, Args: []string{"slurmctld", "-D"},
				Env:          []corev1.EnvVar{{Name: "A", Value: "1"}},
				VolumeMounts: []corev1.VolumeMount{{Name: "etc", MountPath: "/etc/slurm"}},
				SecurityContext: &corev1.SecurityContext{
					ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{
						Add: []corev1.Capability{"CHOWN", "KILL"}, Drop: []corev1.Capability{"ALL"},
					},
				},
			}},
			Volumes: []corev1.Volume{{Name: "etc"}},
		},
	}
}

func TestMerge(t *testing.T) {
	tests := map[string]struct {
		template slinkyv1beta1.PodTemplate
		parts    map[string]string
		change   func(*corev1.PodTemplateSpec)
	}{
		"keeps the operator's template without fragments": {
			change: func(*corev1.PodTemplateSpec) {},
		},
		"false takes precedence": {
			parts:  map[string]string{"slurmctld": `{"securityContext":{"readOnlyRootFilesystem":false}}`},
			change: func(w *corev1.PodTemplateSpec) { *w.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem = false },
		},
		"an empty list of arguments changes nothing": {
			template: slinkyv1beta1.PodTemplate{
				Spec: podSpecFragment(`{"containers":[{"name":"slurmctld","args":[],"command":[]}]}`),
			},
			parts:  map[string]string{"slurmctld": `{"args":[],"command":null}`},
			change: func(*corev1.PodTemplateSpec) {},
		},
		"adds arguments": {
			template: slinkyv1beta1.PodTemplate{
				Spec: podSpecFragment(`{"containers":[{"name":"slurmctld","args":["-L","/log"]},{"name":"own","args":["a"]}]}`),
			},
			parts: map[string]string{"slurmctld": `{"args":["-vvv"]}`},
			change: func(w *corev1.PodTemplateSpec) {
				w.Spec.Containers[0].Args = []string{"slurmctld", "-D", "-vvv", "-L", "/log"}
				w.Spec.Containers = append(w.Spec.Containers, corev1.Container{Name: "own", Args: []string{"a"}})
			},
		},
		"a command replaces the operator's and its arguments": {
			parts: map[string]string{"slurmctld": `{"command":["gdb"],"args":["slurmctld"]}`},
			change: func(w *corev1.PodTemplateSpec) {
				w.Spec.Containers[0].Command, w.Spec.Containers[0].Args = []string{"gdb"}, []string{"slurmctld"}
			},
		},
		"adds capabilities to the operator's": {
			parts: map[string]string{"slurmctld": `{"securityContext":{"capabilities":{"add":["SYS_ADMIN","KILL"]}}}`},
			change: func(w *corev1.PodTemplateSpec) {
				w.Spec.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_ADMIN", "KILL", "CHOWN"}
			},
		},
		"drops a capability by its name": {
			parts: map[string]string{"slurmctld": `{"securityContext":{"capabilities":{"add":[],"drop":["ALL","KILL"]}}}`},
			change: func(w *corev1.PodTemplateSpec) {
				w.Spec.Containers[0].SecurityContext.Capabilities = &corev1.Capabilities{
					Add: []corev1.Capability{"CHOWN"}, Drop: []corev1.Capability{"ALL", "KILL"},
				}
			},
		},
		"adds nothing to all capabilities": {
			parts: map[string]string{"slurmctld": `{"securityContext":{"capabilities":{"add":["ALL"]}}}`},
			change: func(w *corev1.PodTemplateSpec) {
				w.Spec.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"ALL"}
			},
		},
		"merges variables and mounts by their keys": {
			parts: map[string]string{
				"slurmctld": `{"env":[{"name":"B","value":"2"},{"name":"A","value":"3"}],"volumeMounts":[{"name":"x","mountPath":"/x"}]}`},
			change: func(w *corev1.PodTemplateSpec) {
				w.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "B", Value: "2"}, {Name: "A", Value: "3"}}
				w.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
					{Name: "x", MountPath: "/x"}, {Name: "etc", MountPath: "/etc/slurm"},
				}
			},
		},
		"keeps the container's name": {
			parts:  map[string]string{"slurmctld": `{"name":"other","image":"mine"}`},
			change: func(w *corev1.PodTemplateSpec) { w.Spec.Containers[0].Image = "mine" },
		},
		"merges onto init containers": {
			parts:  map[string]string{"reconfigure": `{"image":"mine"}`},
			change: func(w *corev1.PodTemplateSpec) { w.Spec.InitContainers[0].Image = "mine" },
		},
		"merges containers of the pod by name and adds others": {
			template: slinkyv1beta1.PodTemplate{
				Spec: podSpecFragment(
					`{"containers":[{"name":"side","image":"s"},{"name":"slurmctld","image":"mine"}],"volumes":[{"name":"home"}]}`)},
			change: func(w *corev1.PodTemplateSpec) {
				w.Spec.Containers[0].Image = "mine"
				w.Spec.Containers = []corev1.Container{{Name: "side", Image: "s"}, w.Spec.Containers[0]}
				w.Spec.Volumes = []corev1.Volume{{Name: "home"}, {Name: "etc"}}
			},
		},
		"operator's labels take precedence, the user's are added": {
			template: slinkyv1beta1.PodTemplate{Metadata: slinkyv1beta1.Metadata{
				Labels:      map[string]slinkyv1beta1.LabelValue{"app.kubernetes.io/name": "mine", "team": "hpc"},
				Annotations: map[string]string{"theirs": "2"},
			}},
			change: func(w *corev1.PodTemplateSpec) {
				w.Labels["team"] = "hpc"
				w.Annotations["theirs"] = "2"
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var parts []podtemplate.Part
			for container, fragment := range test.parts {
				parts = append(parts, podtemplate.Part{Container: container, Fragment: containerFragment(fragment)})
			}
			got, err := podtemplate.Merge(own(), test.template, parts...)
			if err != nil {
				t.Fatal(err)
			}
			want := own()
			test.change(&want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMergeDoesNotChangeItsArguments(t *testing.T) {
	template, before := own(), own()
	if _, err := podtemplate.Merge(template, slinkyv1beta1.PodTemplate{},
		podtemplate.Part{Container: "slurmctld", Fragment: containerFragment(`{"image":"mine"}`)}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, template); diff != "" {
		t.Error(diff)
	}
}

// FuzzMerge checks that no fragment, valid or not, makes Merge panic, and that the result can be applied.
func FuzzMerge(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"containers":null}`, `{"containers":[{"name":"slurmctld","$patch":"delete"}]}`,
		`{"volumes":[{"name":"etc","$patch":"replace"}]}`,
		`{"securityContext":{"runAsUser":0}}`, `{"containers":[{}]}`, `{"env":[{"name":"A","value":null}]}`,
		`{"$retainKeys":["a"]}`, `[]`, `{"containers":{}}`,
		`{"tolerations":[{"operator":"Exists"}]}`, `{"resources":{"limits":{"cpu":"1"}}}`,
	} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, spec, container string) {
		merged, err := podtemplate.Merge(own(), slinkyv1beta1.PodTemplate{Spec: podSpecFragment(spec)},
			podtemplate.Part{Container: "slurmctld", Fragment: containerFragment(container)})
		if err != nil {
			return
		}
		if merged.Labels["app.kubernetes.io/name"] != "slurmctld" {
			t.Errorf("labels are %v", merged.Labels)
		}
		if _, err := applyconf.PodTemplate(merged); err != nil {
			t.Errorf("the merged template cannot be applied: %v", err)
		}
	})
}

func TestServiceMerge(t *testing.T) {
	service := applyconf.Service{
		Name: "slurm-restapi", Namespace: "slurm", Labels: map[string]string{"l": "1"},
		Selector: map[string]string{"s": "1"},
		Port:     8080, PortName: "slurmrestd",
	}
	got, err := service.Merge(slinkyv1beta1.ServiceTemplate{
		NodePort: 30001,
		Spec: slinkyv1beta1.ServiceSpecFragment{
			Fragment: slinkyv1beta1.Fragment{Raw: []byte(`{"type":"NodePort"}`)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got.Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"ports":[{"name":"slurmrestd","protocol":"TCP","port":8080,"targetPort":"slurmrestd","nodePort":30001}],"selector":{"s":"1"},"type":"NodePort"}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
}

func podSpecFragment(raw string) slinkyv1beta1.PodSpecFragment {
	return slinkyv1beta1.PodSpecFragment{Fragment: slinkyv1beta1.Fragment{Raw: []byte(raw)}}
}

func containerFragment(raw string) slinkyv1beta1.ContainerFragment {
	return slinkyv1beta1.ContainerFragment{Fragment: slinkyv1beta1.Fragment{Raw: []byte(raw)}}
}
