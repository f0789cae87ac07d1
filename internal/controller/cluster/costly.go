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
	"github.com/slurm-operator/slurm-operator/internal/hostlist"
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
func nextStep(scope *scope, wanted, kept candidate) (candidate, *status.Verdict) {
	if scope.promoted.isClosed() && !scope.hasSettled(followTime) &&
		(scope.promoted.makesChange() || scope.lacksReleases()) {
		// No job starts before all slurmds have made the change, whatever else changes meanwhile. Slurm may be silent while
		// slurmctld loads the configuration, and then does not know at once which keys the slurmds know.
		return scope.promoted.candidate(wanted), nil
	}
	if len(kept.waiting) == 0 && (scope.promoted == nil || scope.costlyPod() == "") {
		return wanted, nil
	}
	if !scope.isIdle() || !slurmconf.CanClose(kept.document) {
		return kept, nil
	}
	closed, problem := closeBefore(kept, wanted)
	switch inForce := scope.promoted.hash; {
	case problem != nil:
		return kept, problem
	case closed.hash == inForce && scope.isQuiescent() && len(kept.waiting) > 0:
		return *closed.change, nil
	case closed.hash == inForce, kept.hash == inForce: // everything else is in force before the partitions are closed
		return closed, nil
	}
	return kept, nil
}

// closedWith returns a configuration with closed partitions.
func closedWith(wanted candidate) (candidate, *status.Verdict) {
	document, states := slurmconf.Close(wanted.document)
	closed, problem := seal(document, maps.Clone(wanted.files))
	closed.leaving, closed.closedBefore, closed.openStates = wanted.leaving, []string{wanted.hash}, states
	return closed, problem
}

// keepForJobs returns a wanted configuration with the costly settings that are in force.
func keepForJobs(scope *scope, wanted candidate, document slurmconf.Document, files clusterconf.Files) (
	candidate, *status.Verdict) {
	if scope.promoted == nil {
		return wanted, nil
	}
	document, waiting := slurmconf.KeepForJobs(document, scope.inForce(), scope.despiteJobs())
	var nodes slurmconf.WaitingNodes
	if !scope.changesDespiteJobs(slurmconf.NodeLines) {
		document, nodes = slurmconf.KeepNodes(document, scope.inForce(), scope.wasDrained, scope.mayAddRecord)
		if !nodes.IsZero() {
			waiting = append(waiting, slurmconf.NodeLines)
		}
	}
	if len(waiting) == 0 {
		return wanted, nil
	}
	kept, problem := complete(scope, document, files)
	kept.waiting, kept.waitingNodes = waiting, nodes
	return kept, problem
}

// closeBefore returns a configuration with closed partitions, which comes before a change. It is validated with that
// change, so that the partitions are not closed for one that slurmctld refuses.
func closeBefore(kept, wanted candidate) (candidate, *status.Verdict) {
	change, problem := closedWith(wanted)
	if problem != nil {
		return candidate{}, problem
	}
	files := maps.Clone(kept.files)
	document, states := slurmconf.Close(kept.document)
	files[slurmconf.FileName] = document.Render()
	hash := slurmconf.Hash(map[string]string{"configuration": slurmconf.Hash(files), "change": wanted.hash})
	document = slurmconf.WithHash(document, hash)
	files[slurmconf.FileName] = document.Render()
	return candidate{
		document: document, files: files, hash: hash, leaving: kept.leaving, waiting: kept.waiting,
		waitingNodes: kept.waitingNodes, closedBefore: []string{kept.hash, change.hash}, openStates: states, change: &change,
	}, nil
}

// despiteJobs returns the keys that an administrator lets change while jobs run. Those of a foreign cluster are
// compared before: see foreignConflict.
func (s *scope) despiteJobs() []string {
	if s.promoted != nil && s.promoted.foreign {
		return slices.Collect(maps.Keys(lasting))
	}
	return clusterconf.DespiteJobs(s.controller)
}

// changesDespiteJobs reports whether an administrator lets a key change while jobs run.
func (s *scope) changesDespiteJobs(key string) bool {
	return slices.ContainsFunc(s.despiteJobs(), func(excepted string) bool { return strings.EqualFold(key, excepted) })
}

// reopen returns a plan that opens the partitions again, if the configuration that was to follow cannot: the spec has a
// mistake or has changed, or the validation run does not end. A change that was made needs time until all slurmds have
// followed. A cluster that another operator has taken is left alone.
func reopen(scope *scope, next plan) plan {
	if !scope.promoted.isClosed() || scope.isForeign() || scope.controller.Spec.External ||
		next.problem == nil && (next.stage == promote || next.stage == settled) {
		return next
	}
	open, validated := scope.promoted.reopened()
	if !validated || scope.promoted.makesChange() && !scope.hasSettled(followTime) {
		return next
	}
	open.closedBefore = nil
	return plan{candidate: open, stage: promote, reopens: true, image: scope.promoted.image}
}

// reopened returns the configuration in force with the partitions as they were before they were closed, and whether
// exactly this configuration was validated.
func (p *promoted) reopened() (open candidate, validated bool) {
	open, problem := seal(p.inForce(), maps.Clone(p.files))
	open.leaving, open.closedBefore = p.leaving, p.closedBefore
	return open, problem == nil && p.user != nil && slices.Contains(p.closedBefore, open.hash)
}

// isIdle reports whether no job held a node when the snapshot was taken.
func (s *scope) isIdle() bool { return s.nodes != nil && !isBusy(s.nodes) }

// isQuiescent reports whether no job holds a node and none can start: slurmctld runs with closed partitions, and was
// seen to have no such job after that.
func (s *scope) isQuiescent() bool {
	return s.promoted.isClosed() && s.hasApplied() && s.jobFree
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
	if scope.promoted == nil || scope.changesDespiteJobs("MaxJobCount") || scope.isIdle() && scope.nodes.Pending == 0 {
		return document, false
	}
	return slurmconf.KeepMaxJobCount(document, scope.inForce())
}

// waitingMessage describes the settings that wait for jobs to end.
func waitingMessage(scope *scope, candidate candidate) (message string) {
	if len(candidate.waiting) > 0 {
		keys := strings.Join(candidate.waiting, ",")
		message = fmt.Sprintf("; %s stays as it was until no job runs, because a change would cost running jobs: %s; for new "+
			"jobs to wait until then, create a reservation of all nodes with Flags=MAINT,IGNORE_JOBS, and delete it afterwards; to make the change now, and lose "+
			"jobs, annotate the Controller with %s=%s", keys, scope.describeJobs(),
			slinkyv1beta1.AnnotationChangeDespiteJobs, keys)
	}
	if len(candidate.waiting) > 0 && !slurmconf.CanClose(candidate.document) {
		message += "; with ReconfigFlags=KeepPartInfo or KeepPartState only the annotation makes the change, because " +
			"partitions that keep their state cannot be closed for it"
	}
	if kept := hostlist.Text(candidate.waitingNodes.Kept); kept != "" {
		message += fmt.Sprintf("; the lines of Slurm nodes %s change earlier if these nodes are drained and have no job "+
			"(scontrol update 'nodename=%s' state=drain reason=reconfiguration; resume those that stay afterwards)", kept, kept)
	}
	if added := hostlist.Text(candidate.waitingNodes.Added); added != "" {
		message += fmt.Sprintf("; Slurm nodes %s have registered without a line, and their slurmds would exit with their "+
			"jobs; to add the lines earlier, stop these slurmds when they have no job, and delete the nodes "+
			"(scontrol delete 'nodename=%s')", added, added)
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
	case s.isIdle() && s.promoted.isClosed():
		return "none runs any more, and none starts while the partitions are closed for the change"
	case s.isIdle():
		return "none runs any more"
	case len(s.nodes.Loads) == 0:
		return "some are starting, or are being cleaned up"
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
