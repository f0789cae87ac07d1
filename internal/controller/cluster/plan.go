package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
	"github.com/slurm-operator/slurm-operator/internal/keys"
	"github.com/slurm-operator/slurm-operator/internal/podfailure"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A plan is the result of a reconcile's decisions.
type plan struct {
	// problem is what the user must fix before anything can change; running daemons are left alone.
	problem *status.Verdict
	// candidate is the configuration that the spec describes; not valid if there is a problem.
	candidate candidate
	// stage is the candidate's stage.
	stage stage
	// detail is what the validation run reported.
	detail string
	// endValidation is true if the existing validation run is no longer needed.
	endValidation bool
	// reopens is true if the candidate is the configuration in force with open partitions, and nothing else may change.
	reopens bool
	// commits is true if the candidate is the configuration that was accepted before the old slurmctld of a takeover was
	// stopped.
	commits bool
	// image is the image for slurmctld's pods: always one with which the configuration was validated. Empty before the
	// first validation run.
	image string
}

// A stage of a configuration on its way to slurmctld.
type stage uint8

const (
	// notBuilt: it could not be built.
	notBuilt stage = iota
	// begin: its validation run must be started.
	begin
	// validating: its validation run is running.
	validating
	// refused: slurmctld refused it.
	refused
	// validationFailed: the validation run itself failed.
	validationFailed
	// promote: it was accepted, or needs no validation, and must be written to the live ConfigMap.
	promote
	// settled: it is in the live ConfigMap.
	settled
)

// decide makes a plan.
func decide(scope *scope) plan {
	if next, isCommitted := committed(scope); isCommitted {
		return next
	}
	return reopen(scope, advance(scope))
}

// advance makes a plan that leads to the configuration of the spec.
func advance(scope *scope) plan {
	if problem := obstacle(scope); problem != nil {
		return keep(scope, plan{problem: problem})
	}
	if scope.slurmKey == nil || scope.jwtKey == nil {
		return keep(scope, plan{}) // the keys are generated in this reconcile
	}
	builder := build
	if scope.controller.Spec.External {
		builder = buildExternal
	}
	candidate, problem := builder(scope)
	if original, found := unedited(scope); found {
		candidate, problem = original, nil
	}
	if problem != nil {
		return keep(scope, plan{problem: problem})
	}
	if problem := foreignConflict(scope, candidate.document); problem != nil {
		return keep(scope, plan{problem: problem})
	}
	next := progress(scope, candidate)
	if next.stage == promote && !scope.controller.Spec.External {
		if problem := releaseProblem(scope); problem != nil {
			return keep(scope, plan{problem: problem})
		}
	}
	if next.stage == promote || next.stage == settled {
		next.image = scope.image
		return next
	}
	return keep(scope, next)
}

// keep makes slurmctld keep the image with which its configuration was accepted.
func keep(scope *scope, plan plan) plan {
	if scope.promoted != nil {
		plan.image = scope.promoted.image
	}
	return plan
}

// obstacle returns the problem that prevents building a configuration, if any.
func obstacle(scope *scope) *status.Verdict {
	if problem := foreignProblem(scope); problem != nil {
		return problem
	}
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
			"spec.slurmKeyRef selects another key than Accounting %s has, so slurmctld and slurmdbd would refuse "+
				"each other; use the same Secret for both, or remove spec.slurmKeyRef",
			scope.accounting.Name)
	case scope.promoted != nil && scope.promoted.slurmKey != "" && scope.slurmKey != nil &&
		scope.promoted.slurmKey != slurmconf.KeyDigest(scope.slurmKey):
		return status.Problem(slinkyv1beta1.ReasonKeyMismatch,
			"Secret %s holds another key than the cluster runs with, and daemons with different keys refuse each "+
				"other; put the old key back, or see docs/keys.md for how to change it",
			scope.keys.Slurm.Name)
	}
	return nil
}

// progress determines the stage of the wanted configuration.
func progress(scope *scope, wanted candidate) plan {
	live := scope.promoted
	if live != nil && (live.image == scope.image || scope.controller.Spec.External) {
		switch {
		case wanted.hash == live.hash && live.lacks(wanted.files): // somebody has edited it
			return plan{candidate: wanted, stage: promote, endValidation: scope.validation != nil}
		case wanted.hash == live.hash:
			return plan{candidate: wanted, stage: settled, endValidation: scope.validation != nil}
		case wanted.hash == live.refusedHash && !live.isEdited(wanted.files):
			return plan{candidate: live.candidate(wanted), stage: settled, endValidation: scope.validation != nil}
		}
	}
	if !scope.validates() || live.hasValidated(wanted, scope) {
		return plan{candidate: wanted, stage: promote, endValidation: scope.validation != nil}
	}
	run := scope.validation
	if !isRun(run, scope, wanted) {
		return plan{candidate: wanted, stage: begin, endValidation: run != nil}
	}
	report, done := reportOf(run)
	if !done {
		return plan{candidate: wanted, stage: validating, detail: podfailure.Describe([]corev1.Pod{*run})}
	}
	return conclude(scope, wanted, report)
}

// validates reports whether configurations are validated.
func (s *scope) validates() bool {
	enabled := s.controller.Spec.ConfigurationTrial.Enabled
	return !s.controller.Spec.External && (enabled == nil || *enabled || s.isForeign())
}

// hasValidated reports whether the configuration in force is one that comes before a candidate, which was validated
// together with it.
func (p *promoted) hasValidated(candidate candidate, scope *scope) bool {
	return p != nil && p.image == scope.image && slices.Contains(p.closedBefore, candidate.hash) &&
		p.user != nil && *p.user == scope.slurmUser()
}

// conclude makes a plan from the report of a finished validation run.
func conclude(scope *scope, wanted candidate, report validation.Report) plan {
	run := scope.validation
	switch {
	case report.Outcome == validation.Accepted && (len(report.LeftOut) > 0 || report.AllLeftOut):
		if run.Annotations[annotationInForce] != scope.hashInForce() {
			// the run accepted the changes against another configuration in force
			return plan{candidate: wanted, stage: begin, endValidation: true}
		}
		reduced, problem := wanted.without(report)
		return plan{candidate: reduced, problem: problem, stage: promote, endValidation: true}
	case report.Outcome == validation.Accepted:
		return plan{candidate: wanted, stage: promote, endValidation: true}
	case report.Outcome == validation.Refused:
		return plan{candidate: wanted, stage: refused, detail: report.Detail}
	}
	return plan{
		candidate: wanted, stage: validationFailed, detail: report.Detail,
		endValidation: scope.now.Sub(endOf(run)) >= validationRetryInterval,
	}
}

// hashInForce returns the hash of the configuration in force; empty if there is none yet.
func (s *scope) hashInForce() string {
	if s.promoted == nil {
		return ""
	}
	return s.promoted.hash
}

// reportOf returns the report of a validation run, if it has finished.
func reportOf(pod *corev1.Pod) (report validation.Report, done bool) {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return validation.Report{}, false
	}
	for _, container := range pod.Status.ContainerStatuses {
		if ended := container.State.Terminated; ended != nil && json.Unmarshal([]byte(ended.Message), &report) == nil &&
			report.Outcome != "" {
			return report, true
		}
	}
	return validation.Report{
		Outcome: validation.Failed,
		Detail:  fmt.Sprintf("pod %s ended without a report: %s %s", pod.Name, pod.Status.Reason, pod.Status.Message),
	}, true
}

// endOf returns when a pod terminated.
func endOf(pod *corev1.Pod) time.Time {
	end := pod.CreationTimestamp.Time
	for _, container := range pod.Status.ContainerStatuses {
		if ended := container.State.Terminated; ended != nil && ended.FinishedAt.After(end) {
			end = ended.FinishedAt.Time
		}
	}
	return end
}

// releaseOf returns the release of Slurm in the image, if a validation run has reported it.
func releaseOf(scope *scope) string {
	if scope.validation != nil && scope.validation.Annotations[annotationImage] == scope.image {
		if report, done := reportOf(scope.validation); done && report.SlurmVersion != "" {
			return report.SlurmVersion
		}
		// Reported by an earlier validation run that no longer exists.
		if release := scope.validation.Annotations[annotationVersion]; release != "" {
			return release
		}
	}
	if scope.promoted != nil && scope.promoted.image == scope.image {
		return scope.promoted.slurmVersion
	}
	return ""
}

// applied reports whether all running slurmctlds use the configuration, and if not, why.
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

// isProvisional reports whether another pod or configuration follows once something has ended that causes no event.
func (s *scope) isProvisional() bool {
	return s.costlyPod() != "" || s.isSwitching() || s.keepsForeignCgroups()
}

// requeueAfter returns when to poll again for changes that cause no watch event; 0 is never.
func (p plan) requeueAfter(scope *scope) time.Duration {
	if scope.promoted.isClosed() && (p.problem != nil || p.stage != promote && p.stage != settled) {
		return waitInterval // the partitions open when all slurmds have followed
	}
	if p.problem != nil {
		return child.RetryRefusal
	}
	switch p.stage {
	case validationFailed:
		return max(validationRetryInterval-scope.now.Sub(endOf(scope.validation)), time.Second)
	case settled, promote:
		if scope.controller.Spec.External {
			return 0
		}
		if done, _ := applied(scope, p.candidate.hash); !done {
			return applyInterval
		}
		if p.candidate.isProvisional() || scope.isProvisional() {
			return waitInterval
		}
	case begin:
		return waitInterval // a pod of the same name may be terminating, which may cause no event
	case validating:
		if !scope.mustPollPods() {
			return validationRetryInterval
		}
	case notBuilt, refused:
	}
	if scope.mustPollPods() {
		return podInterval
	}
	return 0
}
