package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// A cluster that another operator made is left alone until the user asks for the takeover. It then takes these steps,
// each of which is visible in the API server, so that another operator instance can continue:
//
//  1. the configuration is validated, next to the running slurmctld;
//  2. it is recorded, and the StatefulSet is deleted without its pod, so that slurmctld keeps running;
//  3. the pod is deleted, so that slurmctld saves its state and exits;
//  4. the configuration is promoted, and this operator's StatefulSet starts slurmctld with the same state.
//
// The configuration is not promoted before slurmctld has exited: both operators use the same ConfigMap, and the old
// slurmctld would reload files that are meant for another pod. Other daemons follow when slurmctld is taken over.

// annotationReleased on a pod of another operator is when it was first seen without its StatefulSet.
const annotationReleased = "controller." + slinkyv1beta1.GroupName + "/released"

// If the other operator still runs, it creates its StatefulSet again. So a new StatefulSet is left alone for
// foreignSetAge, and a pod without one for releaseTime.
const (
	foreignSetAge = time.Minute
	releaseTime   = 5 * time.Second
)

// hasOwnSet reports whether slurmctld's StatefulSet exists and was made by this operator.
func (s *scope) hasOwnSet() bool {
	return s.statefulSet != nil && podtemplate.IsOwn(s.statefulSet.Spec.Template.Annotations)
}

// hasForeignState reports whether the saved state is on a PVC of another operator.
func (s *scope) hasForeignState() bool {
	return s.claim != "" && s.claim == naming.ForeignStateClaim(s.controller.Name)
}

// isForeign reports whether another operator made the cluster, and it is not taken over yet.
func (s *scope) isForeign() bool {
	switch {
	case s.statefulSet != nil:
		return !s.hasOwnSet()
	case s.promoted != nil:
		return s.promoted.foreign
	default:
		return s.hasForeignState()
	}
}

// foreignPods returns the slurmctld pods of another operator.
func (s *scope) foreignPods() []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range s.pods {
		if !podtemplate.IsOwn(s.pods[i].Annotations) {
			pods = append(pods, &s.pods[i])
		}
	}
	return pods
}

// foreignUser returns the user that another operator's slurmctld runs as; nil if unknown.
func (s *scope) foreignUser() *slinkyv1beta1.SlurmUser {
	if !s.isForeign() {
		return nil
	}
	if s.statefulSet != nil {
		return userOf(&s.statefulSet.Spec.Template.Spec)
	}
	for _, pod := range s.foreignPods() {
		return userOf(&pod.Spec)
	}
	return nil
}

// userOf returns the user of slurmctld's container; nil if the image decides.
func userOf(spec *corev1.PodSpec) *slinkyv1beta1.SlurmUser {
	var user, group *int64
	if security := spec.SecurityContext; security != nil {
		user, group = security.RunAsUser, security.RunAsGroup
	}
	for _, container := range spec.Containers {
		if security := container.SecurityContext; container.Name == containerSlurmctld && security != nil {
			if security.RunAsUser != nil {
				user = security.RunAsUser
			}
			if security.RunAsGroup != nil {
				group = security.RunAsGroup
			}
		}
	}
	if user == nil || *user == 0 {
		return nil
	}
	found, _ := clusterconf.GivenUser(slinkyv1beta1.SlurmUser{UID: *user})
	if group != nil && *group != 0 {
		found.GID = *group
	}
	return &found
}

// foreignProblem returns why a cluster of another operator cannot be taken over, if so.
func foreignProblem(scope *scope) *status.Verdict {
	if !scope.isForeign() {
		return nil
	}
	if !clusterconf.AsksForTakeOver(scope.controller) {
		return status.Problem(slinkyv1beta1.ReasonNotTakenOver, "another operator made this cluster (%s), and nothing of "+
			"it is changed; to take it over, stop that operator and set the annotation %s=true on the Controller%s. "+
			"docs/migrate.md describes it", strings.Join(foreignObjects(scope), ", "),
			slinkyv1beta1.AnnotationTakeOver, takeOverSteps(scope))
	}
	for _, key := range []struct {
		field     string
		reference slinkyv1beta1.SecretKeyReference
		missing   bool
	}{
		{"spec.slurmKeyRef", scope.keys.Slurm, scope.slurmKey == nil},
		{"spec.jwtKeyRef", scope.keys.JWT, scope.jwtKey == nil},
	} {
		if key.missing && scope.generates(key.reference) && !scope.controller.Spec.External {
			return status.Problem(slinkyv1beta1.ReasonReferenceNotFound,
				"the cluster that is to be taken over has keys, and daemons with other keys would be refused; "+
					"name the Secret of its key in %s", key.field)
		}
	}
	if scope.foreignSlurmds > 0 &&
		scope.controller.Annotations[slinkyv1beta1.AnnotationTakeOver] != slinkyv1beta1.TakeOverConfined {
		return status.Problem(slinkyv1beta1.ReasonNotTakenOver, "the jobs of this cluster are confined with cgroups, and "+
			"the takeover reconfigures the slurmds in %d pods of the other operator, which some do not survive; run "+
			"scontrol reconfigure while a test job runs: if it goes on, set the annotation %s to %s, otherwise wait until no "+
			"job runs, and scale the NodeSets to zero", scope.foreignSlurmds, slinkyv1beta1.AnnotationTakeOver,
			slinkyv1beta1.TakeOverConfined)
	}
	return foreignStateProblem(scope)
}

// foreignObjects names the objects by which a cluster of another operator was recognized.
func foreignObjects(scope *scope) []string {
	var objects []string
	if scope.statefulSet != nil {
		objects = append(objects, "StatefulSet "+scope.statefulSet.Name)
	}
	if scope.promoted != nil && scope.promoted.foreign {
		objects = append(objects, "ConfigMap "+naming.Configuration(scope.controller.Name))
	}
	if scope.hasForeignState() {
		objects = append(objects, "PVC "+scope.claim)
	}
	return objects
}

// takeOverSteps describes what the takeover would do.
func takeOverSteps(scope *scope) string {
	if scope.controller.Spec.External {
		return ""
	}
	text, claim := ": a validation run checks the configuration, then slurmctld's pod is replaced once", scope.claim
	if scope.statefulSet != nil {
		claim = claimAt(scope.statefulSet, stateLocation(scope.promoted))
	}
	if claim != "" {
		text += ", with its state on PVC " + claim
	}
	return text + "; running jobs continue, and slurmd pods are replaced when their jobs have ended"
}

// foreignStateProblem returns that slurmctld would start without the state of another operator's slurmctld, and thereby
// end all jobs, if so.
func foreignStateProblem(scope *scope) *status.Verdict {
	if scope.statefulSet == nil || scope.controller.Spec.External {
		return nil
	}
	location := stateLocation(scope.promoted)
	switch claim := claimAt(scope.statefulSet, location); {
	case claim == "":
		return status.Problem(slinkyv1beta1.ReasonStateInUse,
			"StatefulSet %s keeps the state of its slurmctld (StateSaveLocation=%s) on no PVC of its own, so a "+
				"new slurmctld would end all jobs; wait until no job runs, delete that StatefulSet, and remove ConfigMap %s",
			scope.statefulSet.Name, location, naming.Configuration(scope.controller.Name))
	case claim != scope.claim:
		return status.Problem(slinkyv1beta1.ReasonStateInUse,
			"the slurmctld of StatefulSet %s keeps its state on PVC %s, and this operator would use PVC %q, so that all "+
				"jobs would end; set spec.persistence.existingClaim to %s", scope.statefulSet.Name, claim, scope.claim, claim)
	}
	return nil
}

// lasting are settings that must not change while jobs run, with Slurm's defaults: slurmds that reload another value
// lose their jobs, or are no longer understood.
var lasting = map[string]string{
	"ClusterName": "", "AuthType": "auth/munge", "CredType": "", "SelectType": "select/cons_tres",
	"SlurmctldPort": "6817", "SlurmdPort": "6818", "SlurmdSpoolDir": "/var/spool/slurmd",
}

// foreignConflict returns that jobs would not survive the change from another operator's configuration to this one, if
// so.
func foreignConflict(scope *scope, wanted slurmconf.Document) *status.Verdict {
	if !scope.isForeign() || scope.promoted == nil {
		return nil
	}
	inForce := scope.promoted.document()
	for _, key := range slices.Sorted(maps.Keys(lasting)) {
		is, will := lasting[key], lasting[key]
		if value, found := inForce.Get(key); found {
			is = value
		}
		if value, found := wanted.Get(key); found {
			will = value
		}
		if is != "" && !strings.EqualFold(is, will) {
			return status.Problem(slinkyv1beta1.ReasonInvalidSpec,
				"the cluster that is to be taken over runs with %s=%s, and its jobs would be lost with %s=%s; make the "+
					"spec of the Controller say %s too, or take it over when no job runs and its ConfigMap %s is deleted",
				key, is, key, will, is, naming.Configuration(scope.controller.Name))
		}
	}
	return nil
}

// stateLocation returns the StateSaveLocation of a configuration of another operator.
func stateLocation(from *promoted) string {
	if from != nil {
		if location, found := from.document().Get("StateSaveLocation"); found {
			return strings.TrimRight(location, "/")
		}
	}
	return slurmconf.StateSaveLocation
}

// claimAt returns the PVC that the slurmctld of a StatefulSet's first pod has at a path; empty if there is none, or if
// it uses only a part of the volume.
func claimAt(set *appsv1.StatefulSet, path string) string {
	volume := ""
	for _, container := range set.Spec.Template.Spec.Containers {
		for _, mount := range container.VolumeMounts {
			if container.Name == containerSlurmctld && strings.TrimRight(mount.MountPath, "/") == path &&
				mount.SubPath == "" && mount.SubPathExpr == "" {
				volume = mount.Name
			}
		}
	}
	for _, template := range set.Spec.VolumeClaimTemplates {
		if template.Name == volume {
			return template.Name + "-" + set.Name + "-0"
		}
	}
	for _, source := range set.Spec.Template.Spec.Volumes {
		if source.Name == volume && source.PersistentVolumeClaim != nil {
			return source.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

// takeOver takes the next step of a takeover, if nothing prevents it.
func (r *Reconciler) takeOver(ctx context.Context, scope *scope, plan *plan) error {
	if plan.problem != nil {
		return r.forgetAccepted(ctx, scope)
	}
	// The validation run needs it.
	if err := r.Children.Apply(ctx, scope.controller, serviceAccount(scope.controller),
		&corev1.ServiceAccount{}); err != nil {
		return err
	}
	if plan.stage != promote {
		return r.advanceConfiguration(ctx, scope, plan)
	}
	ctx = trace.Because(ctx, "TakeOver", "the user asked for the takeover of this cluster")
	if !plan.commits && (scope.statefulSet != nil || len(scope.foreignPods()) > 0) { // while the old slurmctld runs
		if err := r.acceptsServices(ctx, scope); err != nil {
			return err
		}
		if scope.claim == "" || scope.state != nil { // otherwise there is no state that could be lost
			if err := r.recordAccepted(ctx, scope, plan); err != nil {
				return err
			}
		}
	}
	if scope.statefulSet != nil {
		return r.releasePods(ctx, scope, plan)
	}
	gone, err := r.isSetGone(ctx, scope)
	if err != nil || !gone {
		return err
	}
	if pods := scope.foreignPods(); len(pods) > 0 {
		return r.deleteReleased(ctx, scope, pods)
	}
	// slurm.conf stays until it is replaced: the takeover continues from it.
	if err := r.removeForeignFiles(ctx, scope, plan.candidate.files); err != nil {
		return err
	}
	return r.promote(ctx, scope, plan)
}

// releasePods deletes the StatefulSet of another operator without its pods, once it is sure that Kubernetes admits
// the new pod.
func (r *Reconciler) releasePods(ctx context.Context, scope *scope, plan *plan) error {
	old := scope.statefulSet
	if scope.now.Sub(old.CreationTimestamp.Time) < foreignSetAge {
		return nil
	}
	desired, err := statefulSet(scope, plan)
	if err != nil {
		return err
	}
	data, err := json.Marshal(desired)
	if err != nil {
		return err
	}
	set := &appsv1.StatefulSet{}
	if err := json.Unmarshal(data, set); err != nil {
		return err
	}
	if err := r.Children.Admits(ctx, set); err != nil {
		return err
	}
	return r.Children.Release(ctx, scope.controller, old)
}

// isSetGone reports whether no StatefulSet exists, not even one that is being deleted.
func (r *Reconciler) isSetGone(ctx context.Context, scope *scope) (bool, error) {
	name := client.ObjectKey{Namespace: scope.controller.Namespace, Name: naming.Controller(scope.controller.Name)}
	err := r.Client.Get(ctx, name, &appsv1.StatefulSet{})
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// deleteReleased deletes pods of another operator that have had no StatefulSet for releaseTime.
func (r *Reconciler) deleteReleased(ctx context.Context, scope *scope, pods []*corev1.Pod) error {
	for _, pod := range pods {
		since, err := time.Parse(time.RFC3339, pod.Annotations[annotationReleased])
		switch {
		case pod.DeletionTimestamp != nil:
		case metav1.GetControllerOfNoCopy(pod) != nil: // the cache is stale, or a new StatefulSet has adopted it
		case err != nil:
			if err := r.Children.Touch(ctx, pod, annotationReleased, scope.now.UTC().Format(time.RFC3339)); err != nil {
				return err
			}
		case scope.now.Sub(since) >= releaseTime:
			if err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
			}
		}
	}
	return nil
}

// removeForeignFiles removes the files of another operator from the ConfigMap that the new configuration does not have.
func (r *Reconciler) removeForeignFiles(ctx context.Context, scope *scope, files map[string]string) error {
	if scope.promoted == nil {
		return nil
	}
	superfluous := map[string]any{}
	for name := range scope.promoted.files {
		if _, wanted := files[name]; !wanted {
			superfluous[name] = nil
		}
	}
	patch, err := json.Marshal(map[string]any{"data": superfluous, "binaryData": nil})
	if err != nil {
		return err
	}
	live := named(&corev1.ConfigMap{}, scope.controller.Namespace, naming.Configuration(scope.controller.Name))
	if err := r.Client.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner(naming.ManagedBy)); err != nil {
		return fmt.Errorf("removing old files from ConfigMap %s: %w", live.Name, err)
	}
	return nil
}

// takeOverProgress describes the step of a takeover that follows the validation run.
func takeOverProgress(scope *scope, hash string) string {
	text := "the cluster is being taken over with configuration " + hash + ": "
	pods := scope.foreignPods()
	switch {
	case scope.statefulSet != nil && scope.now.Sub(scope.statefulSet.CreationTimestamp.Time) < foreignSetAge:
		return text + fmt.Sprintf("StatefulSet %s was created less than %s ago; if another operator creates it again and "+
			"again, stop that operator", scope.statefulSet.Name, foreignSetAge)
	case scope.statefulSet != nil:
		return text + "StatefulSet " + scope.statefulSet.Name + " is deleted without its pod"
	case slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil }):
		return text + "pod " + pods[0].Name + " is about to be replaced"
	case len(pods) > 0:
		return text + "slurmctld in pod " + pods[0].Name + " saves its state and exits"
	default:
		return text + "slurmctld is about to start"
	}
}
