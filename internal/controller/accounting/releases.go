package accounting

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmdbd"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/status"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// slurmdbd makes the tables of its database those of its release whenever it starts. It refuses a database with a later
// number of its schema, but that is the same in 24.11 to 26.05: an older slurmdbd drops the columns that it does not
// know. So the releases are compared before a pod is replaced.

// annotationRelease on the StatefulSet is the release of the slurmdbd that last converted the database; empty if it is
// not known.
const annotationRelease = "accounting." + slinkyv1beta1.GroupName + "/database-release"

// releaseProblem returns why slurmdbd must not be replaced by that of the wanted image, if so. If one of the releases
// is not known, nothing is compared.
func releaseProblem(scope *scope, image string) *status.Verdict {
	wanted, err := slurm.ParseVersion(scope.releaseIn(image))
	if err != nil {
		return nil
	}
	database, known := scope.databaseRelease()
	switch {
	case !known || wanted.Understands(database):
		return nil
	case database.IsLater(wanted):
		return status.Problem(slinkyv1beta1.ReasonIncompatibleRelease, "slurmdbd %s of image %s is older than the "+
			"database, which is of release %s, and would drop what it does not know; set the image back, or after you "+
			"have restored a backup of the database from before the upgrade, delete StatefulSet %s, which records the "+
			"release",
			wanted.Series(), image, database.Series(), naming.Accounting(scope.accounting.Name))
	}
	return status.Problem(slinkyv1beta1.ReasonIncompatibleRelease, "slurmdbd %s of image %s cannot convert the "+
		"database, which is of release %s; upgrade to %s first", wanted.Series(), image, database.Series(),
		database.LastToUnderstand())
}

// releaseIn returns the release of Slurm in an image: that of the slurmdbd that runs it, or the one in its tag; empty
// if it is not known.
func (s *scope) releaseIn(image string) string {
	for i := range s.pods {
		if containerOf(&s.pods[i].Spec).Image == image {
			return s.releaseOf(&s.pods[i])
		}
	}
	return slurm.ReleaseOfImage(image)
}

// releaseOf returns the release of the slurmdbd in a pod; empty if it is not known.
func (s *scope) releaseOf(pod *corev1.Pod) string {
	if report := s.reportOf(pod); report != nil && report.Release != "" {
		return report.Release
	}
	return slurm.ReleaseOfImage(containerOf(&pod.Spec).Image)
}

// databaseRelease returns the release of the slurmdbd that last converted the database, as far as it is known. One that
// has started has. One that has run before may have, and the latest of those counts.
func (s *scope) databaseRelease() (slurm.Version, bool) {
	releases := []string{s.recordedRelease()}
	for i := range s.pods {
		pod := &s.pods[i]
		if report := s.reportOf(pod); report != nil && report.Phase == slurmdbd.Started {
			if release, known := slurm.Latest([]string{report.Release}); known {
				return release, true
			}
		}
		if s.mayHaveConverted(pod) {
			releases = append(releases, s.releaseOf(pod))
		}
	}
	return slurm.Latest(releases)
}

// mayHaveConverted reports whether slurmdbd may have converted its database in a pod. One that waits for the database
// since it was first started has not.
func (s *scope) mayHaveConverted(pod *corev1.Pod) bool {
	daemon, report := statusOf(pod), s.reportOf(pod)
	switch {
	case daemon == nil:
		return isRunning(pod)
	case daemon.RestartCount == 0 && report != nil && report.Phase == slurmdbd.Waiting:
		return false
	}
	return daemon.State.Waiting == nil || daemon.LastTerminationState.Terminated != nil
}

// recordedRelease returns the release of the database when the StatefulSet was last applied. Other operators, and this
// one in earlier versions, did not record it: the slurmdbd of the pod template then counts as started.
func (s *scope) recordedRelease() string {
	if s.statefulSet == nil {
		return ""
	}
	if release, recorded := s.statefulSet.Annotations[annotationRelease]; recorded {
		return release
	}
	return slurm.ReleaseOfImage(containerOf(&s.statefulSet.Spec.Template.Spec).Image)
}

// releaseToRecord returns the release of the database; empty if it is not known.
func (s *scope) releaseToRecord() string {
	if release, known := s.databaseRelease(); known {
		return release.String()
	}
	return ""
}

// laterPod returns a pod with a slurmdbd of a later series than that of the wanted image; nil if there is none. If the
// wanted one is not refused, that of the pod has not converted the database yet.
func (s *scope) laterPod(image string) *corev1.Pod {
	wanted, err := slurm.ParseVersion(s.releaseIn(image))
	if err != nil {
		return nil
	}
	for i := range s.pods {
		release, err := slurm.ParseVersion(s.releaseOf(&s.pods[i]))
		if err == nil && release.IsLater(wanted) && s.pods[i].DeletionTimestamp == nil {
			return &s.pods[i]
		}
	}
	return nil
}

// A correction is what the StatefulSet must say about the database, even if the spec cannot be applied.
type correction struct {
	// release is that of the database, and image that of slurmdbd.
	release, image string
}

// correct returns the correction of a StatefulSet of this operator; nil if there is nothing to correct. The template
// may have an older image than that of a slurmdbd that was expected not to start. The next pod must not have it.
func correct(scope *scope) *correction {
	set := scope.statefulSet
	if set == nil || !podtemplate.IsOwn(set.Spec.Template.Annotations) || scope.isUncertain() {
		return nil
	}
	is := correction{set.Annotations[annotationRelease], containerOf(&set.Spec.Template.Spec).Image}
	must := is
	if release := scope.releaseToRecord(); release != "" {
		must.release = release
	}
	if releaseProblem(scope, is.image) != nil {
		for i := range scope.pods {
			image := containerOf(&scope.pods[i].Spec).Image
			if scope.releaseOf(&scope.pods[i]) != "" && releaseProblem(scope, image) == nil {
				must.image = image
			}
		}
	}
	if must == is {
		return nil
	}
	return &must
}

// isUncertain reports whether a pod terminates of which is not known what its slurmdbd has done. What may have happened
// prevents an older release until the pod is gone, but is not recorded: a slurmdbd that has only waited for its
// database cannot say so any more when it exits.
func (s *scope) isUncertain() bool {
	return slices.ContainsFunc(s.pods, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil && s.database == nil && !hasAnswered(&pod)
	})
}

// apply changes a pod template and the record.
func (c *correction) apply(set *appsv1.StatefulSet) {
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	set.Annotations[annotationRelease] = c.release
	spec := &set.Spec.Template.Spec
	former := containerOf(spec).Image
	for i := range spec.Containers {
		if spec.Containers[i].Name == string(naming.Slurmdbd) {
			spec.Containers[i].Image = c.image
		}
	}
	for i := range spec.InitContainers {
		if container := &spec.InitContainers[i]; container.Name == configurationName && container.Image == former {
			container.Image = c.image
		}
	}
}

// correct corrects the StatefulSet.
func (r *Reconciler) correct(ctx context.Context, scope *scope, plan plan) error {
	if plan.correction == nil {
		return nil
	}
	ctx = trace.Because(ctx, "DatabaseConverted", "the next slurmdbd must not be older than the database")
	return r.Children.Change(ctx, scope.statefulSet, func() { plan.correction.apply(scope.statefulSet) })
}
