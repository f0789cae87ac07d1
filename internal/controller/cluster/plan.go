package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/inpod/trial"
	"github.com/slurm-operator/slurm-operator/internal/keys"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A plan is what to do about a cluster.
type plan struct {
	// problem is what a person has to mend before anything can change; what runs goes on as it is.
	problem *status.Verdict
	// candidate is the configuration that the spec asks for; of no use with a problem.
	candidate candidate
	// stage is how far it has come.
	stage stage
	// detail says what a trial found.
	detail string
	// endTrial says that the trial that there is has served its purpose.
	endTrial bool
	// image is what slurmctld's pods are to run: never one on which the configuration was not tried. Empty before the
	// first.
	image string
}

// A stage of a configuration's way to slurmctld.
type stage uint8

const (
	// notBuilt: there is a problem.
	notBuilt stage = iota
	// begin: it is to be tried.
	begin
	// trying: it is being tried.
	trying
	// refused: slurmctld refused it.
	refused
	// unheld: the trial could not be held.
	unheld
	// promote: it was accepted, or need not be tried, and is to be written to where slurmctld finds it.
	promote
	// settled: it is where slurmctld finds it.
	settled
)

// decide comes to a plan.
func decide(scope *scope) plan {
	if problem := obstacle(scope); problem != nil {
		return keep(scope, plan{problem: problem})
	}
	if scope.slurmKey == nil || scope.jwtKey == nil {
		return keep(scope, plan{}) // they are about to be generated
	}
	builder := build
	if scope.controller.Spec.External {
		builder = buildExternal
	}
	candidate, problem := builder(scope)
	if problem != nil {
		return keep(scope, plan{problem: problem})
	}
	plan := progress(scope, candidate)
	if plan.stage == promote || plan.stage == settled {
		plan.image = scope.image
		return plan
	}
	return keep(scope, plan)
}

// keep leaves slurmctld on the image on which its configuration was accepted.
func keep(scope *scope, plan plan) plan {
	if scope.promoted != nil {
		plan.image = scope.promoted.image
	}
	return plan
}

// obstacle is what keeps a configuration from being built.
func obstacle(scope *scope) *status.Verdict {
	if problem := stateProblem(scope); problem != nil {
		return problem
	}
	if err := clusterconf.CheckName(scope.controller); err != nil {
		return status.Problem(slinkyv1beta1.ReasonClusterNameTooLong, "%s", err.Error())
	}
	switch {
	case len(scope.missing) > 0:
		return status.Problem(slinkyv1beta1.ReasonReferenceNotFound, "%s", strings.Join(scope.missing, "; "))
	case scope.lostKey():
		return status.Problem(slinkyv1beta1.ReasonReferenceNotFound, "%s", keys.Lost(scope.keys.Slurm))
	case scope.mismatch:
		return status.Problem(slinkyv1beta1.ReasonKeyMismatch,
			"spec.slurmKeyRef selects another key than Accounting %s has, so slurmctld and slurmdbd would refuse each other; use the same Secret for both, or remove spec.slurmKeyRef",
			scope.accounting.Name)
	case scope.promoted != nil && scope.promoted.slurmKey != "" && scope.slurmKey != nil && scope.promoted.slurmKey != slurmconf.KeyDigest(scope.slurmKey):
		return status.Problem(slinkyv1beta1.ReasonKeyMismatch,
			"Secret %s holds another key than the cluster runs with, and daemons with different keys refuse each other; put the old key back, or see docs/keys.md for how to change it",
			scope.keys.Slurm.Name)
	}
	return nil
}

// progress is how far a configuration has come.
func progress(scope *scope, wanted candidate) plan {
	live := scope.promoted
	if live != nil && (live.image == scope.image || scope.controller.Spec.External) {
		switch wanted.hash {
		case live.hash:
			return plan{candidate: wanted, stage: settled, endTrial: scope.trial != nil}
		case live.whole:
			return plan{candidate: live.candidate(wanted), stage: settled, endTrial: scope.trial != nil}
		}
	}
	if tries := scope.controller.Spec.ConfigurationTrial.Enabled; scope.controller.Spec.External || (tries != nil && !*tries) {
		return plan{candidate: wanted, stage: promote, endTrial: scope.trial != nil}
	}
	run := scope.trial
	if run == nil || run.Annotations[annotationHash] != wanted.hash || run.Annotations[annotationImage] != scope.image {
		return plan{candidate: wanted, stage: begin, endTrial: run != nil}
	}
	report, done := reportOf(run)
	if !done {
		return plan{candidate: wanted, stage: trying, detail: status.PodTrouble([]corev1.Pod{*run})}
	}
	return conclude(scope, wanted, report)
}

// conclude is what follows from the report of a finished validation run.
func conclude(scope *scope, wanted candidate, report trial.Report) plan {
	run := scope.trial
	switch {
	case report.Outcome == trial.Accepted && (len(report.LeftOut) > 0 || report.AllLeftOut):
		if run.Annotations[annotationInForce] != scope.hashInForce() {
			return plan{candidate: wanted, stage: begin, endTrial: true} // what was accepted is not what this would make
		}
		reduced, problem := wanted.without(report)
		return plan{candidate: reduced, problem: problem, stage: promote, endTrial: true}
	case report.Outcome == trial.Accepted:
		return plan{candidate: wanted, stage: promote, endTrial: true}
	case report.Outcome == trial.Refused:
		return plan{candidate: wanted, stage: refused, detail: report.Detail}
	}
	return plan{candidate: wanted, stage: unheld, detail: report.Detail, endTrial: scope.now.Sub(endOf(run)) >= retryTrial}
}

// hashInForce is the hash of the configuration in force; empty before the first.
func (s *scope) hashInForce() string {
	if s.promoted == nil {
		return ""
	}
	return s.promoted.hash
}

// reportOf reads how a trial ended, if it has.
func reportOf(pod *corev1.Pod) (report trial.Report, done bool) {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return trial.Report{}, false
	}
	for _, container := range pod.Status.ContainerStatuses {
		if ended := container.State.Terminated; ended != nil && json.Unmarshal([]byte(ended.Message), &report) == nil && report.Outcome != "" {
			return report, true
		}
	}
	return trial.Report{Outcome: trial.Failed, Detail: fmt.Sprintf("pod %s ended without a report: %s %s", pod.Name, pod.Status.Reason, pod.Status.Message)}, true
}

// endOf is when a pod ended.
func endOf(pod *corev1.Pod) time.Time {
	end := pod.CreationTimestamp.Time
	for _, container := range pod.Status.ContainerStatuses {
		if ended := container.State.Terminated; ended != nil && ended.FinishedAt.After(end) {
			end = ended.FinishedAt.Time
		}
	}
	return end
}

// releaseOf is the release of Slurm in the image, as far as trials have found it.
func releaseOf(scope *scope) string {
	if scope.trial != nil && scope.trial.Annotations[annotationImage] == scope.image {
		if report, done := reportOf(scope.trial); done && report.SlurmVersion != "" {
			return report.SlurmVersion
		}
		// What an earlier trial found, which has gone since.
		if release := scope.trial.Annotations[annotationVersion]; release != "" {
			return release
		}
	}
	if scope.promoted != nil && scope.promoted.image == scope.image {
		return scope.promoted.slurmVersion
	}
	return ""
}

// applied tells whether every slurmctld that runs has the configuration, and if not, why.
func applied(scope *scope, hash string) (bool, string) {
	active := false
	for _, pod := range scope.pods {
		state, answers := scope.agents[pod.Name]
		switch {
		case !answers:
			continue
		case state.RunningHash != hash && state.LastError != "":
			return false, fmt.Sprintf("pod %s: %s", pod.Name, state.LastError)
		case state.FilesHash != hash:
			return false, fmt.Sprintf("pod %s does not have the files yet", pod.Name)
		case state.RunningHash == hash:
			active = true
		}
	}
	if !active {
		return false, "no slurmctld has reported yet that it runs with it"
	}
	return true, ""
}

// again is when to look again at what tells nobody when it changes; 0 is never.
func (p plan) again(scope *scope) time.Duration {
	if p.problem != nil {
		return child.RetryRefusal
	}
	switch p.stage {
	case unheld:
		return max(retryTrial-scope.now.Sub(endOf(scope.trial)), time.Second)
	case settled, promote:
		if scope.controller.Spec.External {
			return 0
		}
		if done, _ := applied(scope, p.candidate.hash); !done {
			return applyInterval
		}
		if len(p.candidate.held) > 0 || len(p.candidate.leaving) > 0 {
			return waitInterval
		}
	case notBuilt, begin, trying, refused:
	}
	return 0
}
