package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// Some changes cost running jobs: of some keys of slurm.conf, and of the pod of a slurmctld whose state would be lost.
// They wait until no job runs. When the last one has ended, slurmctld first gets its configuration with all partitions
// closed, so that no job starts. If a query that was made afterwards shows no running job, the change is made, and the
// partitions are opened when all slurmds have had time to follow. Otherwise they are opened without the change.

// followTime is how long slurmds may take to load a configuration that slurmctld runs with.
const followTime = 30 * time.Second

// nextStep returns the configuration to have next, of a wanted one and of one that is as wanted but for the keys that
// wait: their settings are those in force.
func nextStep(scope *scope, wanted, kept candidate, waiting []string) (candidate, *status.Verdict) {
	if scope.promoted.isClosed() {
		changed, problem := closedWith(wanted)
		if problem != nil || changed.hash == scope.promoted.hash && !scope.hasSettled(followTime) {
			return changed, problem // no job starts before all slurmds have made the change
		}
	}
	if len(waiting) == 0 && (scope.promoted == nil || scope.costlyPod() == "") {
		return wanted, nil
	}
	kept.waiting = waiting
	if !scope.isIdle() || !slurmconf.CanClose(kept.document) {
		return kept, nil
	}
	closed, problem := closeBefore(kept, wanted)
	switch inForce := scope.promoted.hash; {
	case problem != nil:
		return kept, problem
	case closed.hash == inForce && scope.isQuiescent() && len(waiting) > 0:
		return *closed.change, nil
	case closed.hash == inForce, kept.hash == inForce: // everything else is in force before the partitions are closed
		return closed, nil
	}
	return kept, nil
}

// closedWith returns a configuration with closed partitions.
func closedWith(wanted candidate) (candidate, *status.Verdict) {
	closed, problem := seal(slurmconf.Close(wanted.document), maps.Clone(wanted.files))
	closed.leaving, closed.closedBefore = wanted.leaving, []string{wanted.hash}
	return closed, problem
}

// keepForJobs returns a wanted configuration with the costly settings that are in force, and their keys.
func keepForJobs(scope *scope, wanted candidate, document slurmconf.Document, files clusterconf.Files) (
	kept candidate, waiting []string, problem *status.Verdict) {
	if scope.promoted == nil {
		return wanted, nil, nil
	}
	document, waiting = slurmconf.KeepForJobs(document, scope.inForce(), scope.despiteJobs())
	if len(waiting) == 0 {
		return wanted, nil, nil
	}
	kept, problem = complete(scope, document, files)
	return kept, waiting, problem
}

// closeBefore returns a configuration with closed partitions, which comes before a change. It is validated with that
// change, so that the partitions are not closed for one that slurmctld refuses.
func closeBefore(kept, wanted candidate) (candidate, *status.Verdict) {
	change, problem := closedWith(wanted)
	if problem != nil {
		return candidate{}, problem
	}
	files := maps.Clone(kept.files)
	document := slurmconf.Close(kept.document)
	files[slurmconf.FileName] = document.Render()
	hash := slurmconf.Hash(map[string]string{"configuration": slurmconf.Hash(files), "change": wanted.hash})
	document = slurmconf.WithHash(document, hash)
	files[slurmconf.FileName] = document.Render()
	return candidate{
		document: document, files: files, hash: hash, leaving: kept.leaving, waiting: kept.waiting,
		closedBefore: []string{kept.hash, change.hash}, change: &change,
	}, nil
}

// despiteJobs returns the keys that an administrator lets change while jobs run. Those of a foreign cluster are
// compared before: see foreignConflict.
func (s *scope) despiteJobs() []string {
	if s.promoted.foreign {
		return slices.Collect(maps.Keys(lasting))
	}
	return splitList(s.controller.Annotations[slinkyv1beta1.AnnotationChangeDespiteJobs])
}

// isIdle reports whether no job held a node when the snapshot was taken.
func (s *scope) isIdle() bool {
	return s.nodes != nil && len(s.nodes.Loads) == 0 && s.nodes.Running == 0 && s.nodes.Unplaced == 0
}

// isQuiescent reports whether no job holds a node and none can start: slurmctld runs with closed partitions, and was
// seen to have no such job after that.
func (s *scope) isQuiescent() bool {
	return s.promoted.isClosed() && s.hasApplied() && !s.holdsJobs()
}

// hasApplied reports whether slurmctld runs with the promoted configuration.
func (s *scope) hasApplied() bool {
	inForce, _ := applied(s, s.promoted.hash)
	return inForce
}

// costlyPod returns a pod that is to be replaced, and whose slurmctld would lose its state; empty if there is none.
func (s *scope) costlyPod() string {
	for i := range s.pods {
		if pod := s.pods[i]; s.isReplaced(pod) && s.losesState(pod) {
			return pod.Name
		}
	}
	return ""
}

// isReplaced reports whether a pod is being deleted, or will be because its template has changed.
func (s *scope) isReplaced(pod corev1.Pod) bool {
	return isDeleted(pod) || s.statefulSet != nil && podtemplate.Differs(&pod, s.statefulSet)
}

// losesState reports whether the slurmctld in place of a pod would start without the state of the one in the pod.
func (s *scope) losesState(pod corev1.Pod) bool {
	return mayHaveRun(&pod) && (s.claim == "" || !slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return isStateClaim(volume) && volume.PersistentVolumeClaim.ClaimName == s.claim
	}))
}

// keepMaxJobCount keeps a higher MaxJobCount while there are jobs.
func keepMaxJobCount(scope *scope, document slurmconf.Document) (kept slurmconf.Document, keeps bool) {
	excepted := func(key string) bool { return strings.EqualFold(key, "MaxJobCount") }
	if scope.promoted == nil || slices.ContainsFunc(scope.despiteJobs(), excepted) ||
		scope.isIdle() && scope.nodes.Pending == 0 {
		return document, false
	}
	return slurmconf.KeepMaxJobCount(document, scope.inForce())
}

// waitingMessage describes the settings that wait for jobs to end.
func waitingMessage(scope *scope, candidate candidate) (message string) {
	if len(candidate.waiting) > 0 {
		keys := strings.Join(candidate.waiting, ",")
		message = fmt.Sprintf("; %s stays as it was until no job runs, because a change would cost running jobs: %s; for new "+
			"jobs to wait until then, create a reservation with Flags=MAINT for all nodes; to make the change now, and lose "+
			"jobs, annotate the Controller with %s=%s", keys, scope.describeJobs(),
			slinkyv1beta1.AnnotationChangeDespiteJobs, keys)
	}
	if len(candidate.closedBefore) > 0 && len(candidate.waiting) == 0 {
		message += "; no job starts for a moment, while all slurmds make a change that costs running jobs"
	}
	if candidate.keepsJobCount {
		message += "; MaxJobCount stays as it was until there is no job, because slurmctld drops those that do not fit"
	}
	return message
}

// describeJobs describes the jobs that run.
func (s *scope) describeJobs() string {
	switch {
	case s.nodes == nil:
		return "Slurm does not answer"
	case s.isIdle():
		return "none runs any more, and none starts while the partitions are closed for the change"
	}
	var latest time.Time
	for _, load := range s.nodes.Loads {
		if load.Unlimited || load.Until.IsZero() {
			return fmt.Sprintf("%d jobs on %d nodes, some without a time limit", s.nodes.Running, len(s.nodes.Loads))
		}
		if load.Until.After(latest) {
			latest = load.Until
		}
	}
	return fmt.Sprintf("%d jobs on %d nodes, the last until %s", s.nodes.Running, len(s.nodes.Loads),
		latest.UTC().Format("2006-01-02 15:04 MST"))
}
