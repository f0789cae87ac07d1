package config

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

// slurmctldPod returns a pod of slurmctld.
func slurmctldPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "slurm-controller-0"},
		Spec: corev1.PodSpec{
			ServiceAccountName: "slurm-controller", NodeSelector: map[string]string{"pool": "system"},
			SecurityContext:  &corev1.PodSecurityContext{RunAsUser: new(int64(64030))},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
			InitContainers:   []corev1.Container{{Name: installer, Image: "slurm-operator:v0.1.0"}},
			Containers:       []corev1.Container{{Name: "slurmctld", Image: "slurmctld:26.05"}},
			Volumes: []corev1.Volume{{Name: "state", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "slurm-controller-state"},
			}}},
		},
	}
}

// changedInput returns the input with another partition, a changed parameter and a new file.
func changedInput(t *testing.T) (before, after *Input) {
	t.Helper()
	before = input(t)
	controller := before.Controller.DeepCopy()
	controller.Spec.ExtraConf = strings.Replace(controller.Spec.ExtraConf, "SlurmdTimeout=600", "SlurmdTimeout=900", 1)
	set := nodeSet("gpu", "MaxTime=120")
	files := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "files"}, Data: map[string]string{"oci.conf": "x=y\n"}}
	after, err := before.With([]any{controller, &set, files})
	if err != nil {
		t.Fatal(err)
	}
	return before, after
}

func TestValidationRun(t *testing.T) {
	before, after := changedInput(t)
	run, err := NewRun(before, after, slurmctldPod(), "slurm-check-abcde")
	if err != nil {
		t.Fatal(err)
	}
	golden.YAML(t, "validation-run.yaml", run.Pod, run.Files)
}

// A validation run has nothing of the real cluster: no keys, no state, and no label by which a Service, the operator or
// the plugin itself finds its pods.
func TestValidationRunIsApart(t *testing.T) {
	before, after := changedInput(t)
	run, err := NewRun(before, after, slurmctldPod(), "slurm-check-abcde")
	if err != nil {
		t.Fatal(err)
	}
	for _, volume := range run.Pod.Spec.Volumes {
		if volume.Secret != nil || volume.PersistentVolumeClaim != nil || volume.Projected != nil || volume.HostPath != nil {
			t.Errorf("%+v", volume)
		}
	}
	if run.Pod.Labels["app.kubernetes.io/name"] != "kubectl-slurm-check" || len(run.Pod.Labels) != 1 {
		t.Errorf("%+v", run.Pod.Labels)
	}
	conf := run.Files.Data[slurmconf.FileName]
	for _, apart := range []string{"SlurmctldHost=slurm-check-abcde\n", "StateSaveLocation=/trial/state\n"} {
		if !strings.Contains(conf, apart) {
			t.Errorf("%q is missing:\n%s", apart, conf)
		}
	}
	if strings.Contains(conf, "AccountingStorage") || strings.Contains(conf, "slurm-controller-0") {
		t.Error(conf)
	}
}

func TestCandidateKeepsWhatTheChangeDoesNotTouch(t *testing.T) {
	before, after := changedInput(t)
	files := Candidate(before, after)
	conf := files[slurmconf.FileName]
	for text, want := range map[string]int{
		"PartitionName=old State=DRAIN": 1, "SlurmdTimeout=900": 1, "SlurmdTimeout=600": 0, "PartitionName=gpu ": 1,
		"MaxTime=120": 1, "config_hash=5f0c3a91d2b7e644": 1, "PartitionName=debug ": 1,
	} {
		if got := strings.Count(conf, text); got != want {
			t.Errorf("%q is there %d times, want %d:\n%s", text, got, want, conf)
		}
	}
	if files["oci.conf"] != "x=y\n" || files["topology.yaml"] != "" || files["scratch.sh"] == "" ||
		files["cgroup.conf"] == "" {
		t.Errorf("%v", files)
	}
	if before.InForce["oci.conf"] != "" || before.InForce["topology.yaml"] == "" {
		t.Errorf("the configuration in force was changed: %v", before.InForce)
	}
}

func TestValidationRunUsesAChangedImage(t *testing.T) {
	before, after := changedInput(t)
	after.Controller.Spec.Slurmctld.Raw = []byte(`{"image":"slurmctld:26.11"}`)
	run, err := NewRun(before, after, slurmctldPod(), "x")
	if err != nil || run.Pod.Spec.Containers[0].Image != "slurmctld:26.11" {
		t.Errorf("%v: %+v", err, run)
	}
	if _, err := NewRun(before, after, &corev1.Pod{}, "x"); err == nil {
		t.Error("a pod without the helper is accepted")
	}
}
