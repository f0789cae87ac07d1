package cluster

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// stateClaim returns the PVC for the saved state; nil if the state is not kept, or is on a PVC of the user or of
// another operator. It has no ownerReference, so that jobs survive an accidental deletion of the Controller.
func stateClaim(scope *scope) *corev1.PersistentVolumeClaim {
	controller, name := scope.controller, scope.claim
	persistence := controller.Spec.Persistence
	if name == "" || persistence.ExistingClaim != "" || scope.hasForeignState() {
		return nil
	}
	spec := *persistence.PersistentVolumeClaimSpec.DeepCopy()
	if len(spec.AccessModes) == 0 {
		spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		if controller.Spec.HA.Enabled {
			spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}
	}
	if len(spec.Resources.Requests) == 0 {
		spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(defaultState)}
	}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: controller.Namespace, Labels: labels(controller)},
		Spec:       spec,
	}
}

// observeState reads the PVC with the saved state. If the operator has not created one, and another operator has, that
// is the one.
func (r *Reconciler) observeState(ctx context.Context, scope *scope) (err error) {
	controller := scope.controller
	scope.claim = naming.StateClaim(controller)
	commits := scope.continuesWithAccepted()
	if commits {
		scope.claim = scope.accepted.claim
	}
	if scope.claim == "" {
		return nil
	}
	if scope.state, err = r.claim(ctx, controller.Namespace, scope.claim); err != nil || scope.state != nil ||
		commits || controller.Spec.Persistence.ExistingClaim != "" {
		return err
	}
	name := naming.ForeignStateClaim(controller.Name)
	found, err := r.claim(ctx, controller.Namespace, name)
	if scope.usesForeignState(found) {
		scope.claim, scope.state = name, found
	}
	return err
}

// usesForeignState reports whether the saved state is on a PVC of another operator, given that this operator's own does
// not exist. A StatefulSet of this operator says on which one it is: if its PVC was deleted, a PVC that is left of an
// earlier cluster has the state of other jobs.
func (s *scope) usesForeignState(claim *corev1.PersistentVolumeClaim) bool {
	if s.hasOwnSet() {
		return usesClaim(s.statefulSet, naming.ForeignStateClaim(s.controller.Name))
	}
	return claim != nil
}

// claim reads a PVC; nil if it does not exist.
func (r *Reconciler) claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	switch err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, claim); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading PVC %s: %w", name, err)
	}
	return claim, nil
}

// keepsState reports whether a slurmctld has ever run with its state on a PVC, whichever PVC the spec names now.
func keepsState(scope *scope) bool {
	if scope.claim == "" {
		return false
	}
	if scope.hasForeignState() || kept(scope.statefulSet) || scope.wasExternal() && scope.hasSlurmds() {
		return true
	}
	return slices.ContainsFunc(scope.pods, func(pod corev1.Pod) bool {
		return scope.agents[pod.Name].RunningHash != "" && slices.ContainsFunc(pod.Spec.Volumes, isStateClaim)
	})
}

// wasExternal reports whether slurmctld has run elsewhere: its clients have no server's configuration.
func (s *scope) wasExternal() bool {
	if s.promoted == nil || s.promoted.foreign {
		return false
	}
	_, server := s.promoted.document().Get("StateSaveLocation")
	return !server
}

// kept reports whether keepsState was true when the StatefulSet was last applied.
func kept(set *appsv1.StatefulSet) bool {
	return set != nil && set.Annotations[annotationKeepsState] == "true"
}

// expectState prevents slurmctld from starting without its state. It is added after the stamp, because it is no reason
// to replace a pod.
func expectState(template *corev1.PodTemplateSpec) {
	for i := range template.Spec.Containers {
		container := &template.Spec.Containers[i]
		if container.Name == containerSlurmctld && len(container.Args) > 1 &&
			container.Args[0] == naming.HelperPath && container.Args[1] == helperRun {
			container.Args = slices.Insert(container.Args, 2, "--expect-state="+slurmconf.StateSaveLocation)
		}
	}
}

// stateProblem returns the problem that the saved state is lost or would be lost, if so. A slurmctld that starts
// without it kills all running jobs, because it does not know them. So a lost PVC that was in use is not re-created,
// and a pod that uses a PVC under deletion is not deleted.
func stateProblem(scope *scope) *status.Verdict {
	name := scope.claim
	switch {
	case scope.persistenceChanged() && !scope.jobFree:
		return status.Problem(slinkyv1beta1.ReasonStateInUse,
			"spec.persistence.enabled was changed, so that slurmctld would start without what it knows of the jobs "+
				"that run, and end them; "+
				"put the old value back, or wait until no job runs")
	case name == "":
	case scope.state == nil && (scope.continuesWithAccepted() ||
		kept(scope.statefulSet) && usesClaim(scope.statefulSet, name)):
		return status.Problem(slinkyv1beta1.ReasonStateLost,
			"PVC %s was deleted, and with it the saved state of all jobs; a slurmctld that starts without it "+
				"ends every job that runs, so none is started: "+
				"restore a backup as docs/backup.md says, or to start from scratch without the jobs, delete and "+
				"re-create the Controller", name)
	case scope.state == nil && scope.controller.Spec.Persistence.ExistingClaim != "":
		return status.Problem(slinkyv1beta1.ReasonReferenceNotFound,
			"PVC %s, which spec.persistence.existingClaim names, does not exist; create it", name)
	case scope.state != nil && scope.state.DeletionTimestamp != nil:
		return status.Problem(slinkyv1beta1.ReasonStateBeingDeleted,
			"PVC %s is being deleted: it is removed when slurmctld's pod terminates, and with it what slurmctld "+
				"knows of all jobs; "+
				"back up the state while slurmctld runs, then restore it into a new PVC, as docs/backup.md says", name)
	}
	return nil
}

// persistenceChanged reports whether the spec moves the saved state onto a PVC or off one.
func (s *scope) persistenceChanged() bool {
	if s.controller.Spec.External || !s.hasOwnSet() {
		return false
	}
	wasKept := slices.ContainsFunc(s.statefulSet.Spec.Template.Spec.Volumes, isStateClaim)
	return wasKept != (s.claim != "")
}

func isStateClaim(volume corev1.Volume) bool {
	return volume.Name == volumeState && volume.PersistentVolumeClaim != nil
}

func usesClaim(set *appsv1.StatefulSet, claim string) bool {
	return slices.ContainsFunc(set.Spec.Template.Spec.Volumes, func(volume corev1.Volume) bool {
		return isStateClaim(volume) && volume.PersistentVolumeClaim.ClaimName == claim
	})
}
