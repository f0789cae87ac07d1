package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
	"github.com/slurm-operator/slurm-operator/internal/plugin/config"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
)

const (
	// validationTimeout is how long a validation run may take, with pulling its image.
	validationTimeout = 5 * time.Minute
	// validationInterval is the time between two requests for its state.
	validationInterval = time.Second
	// cleanUpTimeout bounds the deletion of its objects, which goes on after the user has interrupted the command.
	cleanUpTimeout = 30 * time.Second
)

// validate asks a throwaway slurmctld about a change. Whatever goes wrong leaves slurmctld among what was not checked.
func (s *session) validate(
	ctx context.Context, client *kube.Client, check *config.Check, before, after *config.Input,
) {
	if after.Controller.Spec.External {
		check.NotChecked = append(check.NotChecked, "slurmctld itself: it is external, and so is its image; the "+
			"configuration that the operator makes is for its clients only")
		return
	}
	report, image, err := runValidation(ctx, client, before, after)
	if err != nil {
		check.NotValidated(err.Error())
		return
	}
	check.Conclude(report, image)
}

// runValidation creates the objects of a validation run, waits for its report, and deletes them.
func runValidation(
	ctx context.Context, client *kube.Client, before, after *config.Input,
) (report validation.Report, image string, err error) {
	container, err := slurmcli.Find(ctx, client, before.Controller)
	if err != nil {
		return report, "", err
	}
	var slurmctld corev1.Pod
	if err := client.Get(ctx, kube.Pods, container.Namespace, container.Pod, &slurmctld); err != nil {
		return report, "", err
	}
	run, err := config.NewRun(before, after, &slurmctld, before.Controller.Name+"-check-"+rand.String(5))
	if err != nil {
		return report, "", err
	}
	image = run.Pod.Spec.Containers[0].Image
	if err := client.Create(ctx, kube.Pods, run.Pod); err != nil {
		return report, image, err
	}
	defer func() { err = errors.Join(err, deleteRun(ctx, client, run)) }()
	// With the pod as owner, its files are deleted even if the plugin cannot do so. The pod waits for them.
	run.Files.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Pod", Name: run.Pod.Name, UID: run.Pod.UID,
	}}
	if err := client.Create(ctx, kube.ConfigMaps, run.Files); err != nil {
		return report, image, err
	}
	report, err = awaitReport(ctx, client, run.Pod)
	return report, image, err
}

// awaitReport waits for the end of a validation run.
func awaitReport(ctx context.Context, client *kube.Client, pod *corev1.Pod) (validation.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, validationTimeout)
	defer cancel()
	ticker := time.NewTicker(validationInterval)
	defer ticker.Stop()
	for {
		var current corev1.Pod
		if err := client.Get(ctx, kube.Pods, pod.Namespace, pod.Name, &current); err != nil {
			return validation.Report{}, err
		}
		report, ended, err := config.ReportOf(&current)
		if ended || err != nil {
			return report, err
		}
		select {
		case <-ctx.Done():
			return report, fmt.Errorf("the validation run in the pod %s was %s when it was given up: %w", pod.Name,
				nodes.PodState(&current), ctx.Err())
		case <-ticker.C:
		}
	}
}

// deleteRun deletes the objects of a validation run, also if the command was interrupted.
func deleteRun(ctx context.Context, client *kube.Client, run *config.Run) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	pod := ignoreNotFound(client.Delete(ctx, kube.Pods, run.Pod.Namespace, run.Pod.Name))
	files := ignoreNotFound(client.Delete(ctx, kube.ConfigMaps, run.Files.Namespace, run.Files.Name))
	if err := errors.Join(pod, files); err != nil {
		return fmt.Errorf("delete the pod and the ConfigMap %s yourself: %w", run.Pod.Name, err)
	}
	return nil
}
