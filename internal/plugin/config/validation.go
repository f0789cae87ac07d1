package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Paths in the pod of a validation run, as in those of the operator.
const (
	scratchPath   = "/trial"
	candidatePath = "/etc/slurm-candidate"
	logPath       = "/var/log/slurm"
	runPath       = "/run/slurmctld"
)

// installer is the init container of slurmctld's pods that installs the operator's helper.
const installer = "install-helper"

// runLabels mark the objects of validation runs. The operator selects nothing by them.
var runLabels = map[string]string{"app.kubernetes.io/name": "kubectl-slurm-check"}

// deadlineSeconds is how long the pod of a validation run may exist, if the plugin is killed before it deletes the pod.
const deadlineSeconds = 600

// A Run is the objects of a validation run: a pod with a throwaway slurmctld, and the files that it starts with.
type Run struct {
	Pod   *corev1.Pod
	Files *corev1.ConfigMap
}

// Candidate returns the files of the configuration after a change: those in force, with the entries that the change
// adds, removes or replaces. What only the operator knows, such as the records of elastic nodes, stays as it is.
func Candidate(before, after *Input) map[string]string {
	was, _ := before.Build()
	becomes, _ := after.Build() // problems are those of the check
	old, updated := byIdentity(was), byIdentity(becomes)
	changed := func(entry slurmconf.Entry) bool {
		return !slices.Equal(old[identity(entry)], updated[identity(entry)])
	}
	var document slurmconf.Document
	for entry := range before.document().All() {
		if !changed(entry) {
			document.Append(entry.Pairs...)
		}
	}
	for entry := range becomes.All() {
		if changed(entry) {
			document.Append(entry.Pairs...)
		}
	}
	files := maps.Clone(before.InForce)
	for name := range before.userFiles() {
		delete(files, name)
	}
	maps.Copy(files, after.userFiles())
	files[slurmconf.FileName] = document.Render()
	return files
}

// byIdentity returns the entries of a document by what identifies them.
func byIdentity(document slurmconf.Document) map[string][]string {
	entries := map[string][]string{}
	for entry := range document.All() {
		entries[identity(entry)] = append(entries[identity(entry)], rendered(entry))
	}
	return entries
}

// identity returns what identifies an entry: its key, and for a record also its name.
func identity(entry slurmconf.Entry) string {
	key := strings.ToLower(entry.Key())
	if len(entry.Pairs) > 1 || slices.Contains([]string{"partitionname", "nodename", "nodeset"}, key) {
		return key + "=" + entry.Value()
	}
	return key
}

// userFiles returns the files of the ConfigMaps that the Controller refers to.
func (in *Input) userFiles() map[string]string {
	files := map[string]string{}
	for _, group := range clusterconf.Groups(in.Controller) {
		for _, reference := range group.References {
			if configMap := in.ConfigMaps[reference.Name]; configMap != nil {
				maps.Copy(files, configMap.Data)
			}
		}
	}
	return files
}

// NewRun returns a validation run of files, as the operator would do it: scheduled like a pod of slurmctld, with
// temporary state and random keys, and without everything that could affect the real cluster. The name is that of the
// pod and of the host.
func NewRun(before, after *Input, slurmctld *corev1.Pod, name string) (*Run, error) {
	container := find(slurmctld.Spec.Containers, string(naming.Slurmctld))
	install := find(slurmctld.Spec.InitContainers, installer)
	if container == nil || install == nil {
		return nil, fmt.Errorf("the pod %s lacks the container %s or the init container %s", slurmctld.Name,
			naming.Slurmctld, installer)
	}
	files := Candidate(before, after)
	document, err := slurmconf.Parse(files[slurmconf.FileName])
	if err != nil {
		return nil, err
	}
	files[slurmconf.FileName] = slurmconf.ForValidation(document, slurmconf.ValidationOptions{
		Host: name, Directory: scratchPath + "/etc", State: scratchPath + "/state", PidFile: scratchPath + "/slurmctld.pid",
	}).Render()
	image := container.Image
	if wanted := imageOf(after.Controller.Spec.Slurmctld); wanted != imageOf(before.Controller.Spec.Slurmctld) &&
		wanted != "" {
		image = wanted
	}
	meta := metav1.ObjectMeta{Namespace: slurmctld.Namespace, Name: name, Labels: runLabels}
	return &Run{
		Pod:   &corev1.Pod{ObjectMeta: meta, Spec: runSpec(slurmctld, image, install.Image, name)},
		Files: &corev1.ConfigMap{ObjectMeta: meta, Data: files},
	}, nil
}

func find(containers []corev1.Container, name string) *corev1.Container {
	index := slices.IndexFunc(containers, func(container corev1.Container) bool { return container.Name == name })
	if index < 0 {
		return nil
	}
	return &containers[index]
}

// imageOf returns the image of a fragment; empty if it has none.
func imageOf(fragment slinkyv1beta1.ContainerFragment) string {
	var container struct {
		Image string `json:"image"`
	}
	if fragment.IsZero() || json.Unmarshal(fragment.Raw, &container) != nil {
		return ""
	}
	return container.Image
}

// runSpec returns the pod of a validation run.
func runSpec(slurmctld *corev1.Pod, image, helperImage, configMap string) corev1.PodSpec {
	scratch := map[string]string{"scratch": scratchPath, "run": runPath, "log": logPath, "tmp": "/tmp"}
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: new(int64(deadlineSeconds)),
		ServiceAccountName: slurmctld.Spec.ServiceAccountName, AutomountServiceAccountToken: new(false),
		EnableServiceLinks: new(false), SecurityContext: slurmctld.Spec.SecurityContext,
		ImagePullSecrets: slurmctld.Spec.ImagePullSecrets, NodeSelector: slurmctld.Spec.NodeSelector,
		Tolerations: slurmctld.Spec.Tolerations, RuntimeClassName: slurmctld.Spec.RuntimeClassName,
		PriorityClassName: slurmctld.Spec.PriorityClassName,
		InitContainers:    []corev1.Container{podtemplate.HelperContainer(installer, helperImage)},
		Containers: []corev1.Container{{
			Name: "validation", Image: image, Command: podtemplate.Start(0),
			Args:            []string{naming.HelperPath, "validate", "--config", candidatePath, "--scratch", scratchPath},
			SecurityContext: podtemplate.Locked(), Resources: podtemplate.Validation(),
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			VolumeMounts: []corev1.VolumeMount{
				{Name: "candidate", MountPath: candidatePath, ReadOnly: true},
				{Name: "candidate", MountPath: slurmconf.Directory, ReadOnly: true}, // for absolute paths in it
				podtemplate.HelperMount(),
			},
		}},
		Volumes: []corev1.Volume{
			{Name: "candidate", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, DefaultMode: new(int32(0o555)),
			}}},
			podtemplate.HelperVolume(),
		},
	}
	for _, name := range slices.Sorted(maps.Keys(scratch)) {
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: name, MountPath: scratch[name]})
		spec.Volumes = append(spec.Volumes, corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		})
	}
	podtemplate.Size(&spec, installer)
	return spec
}

// ReportOf returns the report of a validation run, and whether it has ended. It returns an error for a pod that will
// not start.
func ReportOf(pod *corev1.Pod) (report validation.Report, ended bool, err error) {
	for _, statuses := range [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses,
	} {
		for i := range statuses {
			if waiting := statuses[i].State.Waiting; waiting != nil &&
				slices.Contains([]string{"ImagePullBackOff", "InvalidImageName", "CreateContainerError"}, waiting.Reason) {
				return report, false, fmt.Errorf("%s: %s", waiting.Reason, waiting.Message)
			}
		}
	}
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return report, false, nil
	}
	for i := range pod.Status.ContainerStatuses {
		ended := pod.Status.ContainerStatuses[i].State.Terminated
		if ended != nil && json.Unmarshal([]byte(ended.Message), &report) == nil && report.Outcome != "" {
			return report, true, nil
		}
	}
	return report, true, errors.New(strings.TrimSpace("the pod ended without a report " + pod.Status.Message))
}

// Conclude adds the outcome of a validation run.
func (c *Check) Conclude(report validation.Report, image string) {
	slurmctld := fmt.Sprintf("slurmctld %s of the image %s", report.SlurmVersion, image)
	switch report.Outcome {
	case validation.Accepted:
		c.Checked = append(c.Checked, slurmctld+" accepts it, in a validation run with a throwaway slurmctld")
	case validation.Refused:
		c.Checked = append(c.Checked, slurmctld+", in a validation run with a throwaway slurmctld")
		c.Problems = append(c.Problems, Problem{"Controller " + c.Controller, slurmctld + " refuses it: " + report.Detail})
	case validation.Failed:
		c.NotValidated("the validation run failed: " + report.Detail)
	}
}

// NotValidated adds that slurmctld itself was not asked, and why.
func (c *Check) NotValidated(why string) {
	c.NotChecked = append(c.NotChecked, "slurmctld itself: "+why+"; when the change is applied, the operator validates "+
		"it on a throwaway slurmctld before the running one gets it, and does not apply what that refuses")
}
