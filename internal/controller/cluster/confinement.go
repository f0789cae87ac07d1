package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
)

// A running cluster becomes confined in three steps: the NodeSets replace all slurmd pods by prepared ones, each when
// its Slurm node is drained, then cgroups are enabled, and then jobs are confined. In the other direction, jobs are no
// longer confined, then cgroups are disabled, and the pods follow. A slurmd that is being reconfigured may start a job
// with the settings for jobs from one side of a change and cgroup.conf from the other: if cgroups were not enabled on
// both, the job would fail.

// settleTime is how long a slurmd may take at most to adopt new settings.
const settleTime = 2 * time.Minute

// confinement returns how jobs are to be confined. If the spec does not say it, they are in a new cluster, and stay as
// they are in another one. If its configuration is lost, the status still says how they are.
func (s *scope) confinement() slinkyv1beta1.JobConfinement {
	chosen, recorded := s.controller.Spec.JobConfinement, s.controller.Status.JobConfinement
	extraConf := s.controller.Spec.ExtraConf
	switch {
	case chosen != "":
		return chosen
	case s.controller.Spec.External, clusterconf.ConfiguresCgroups(extraConf, s.files[clusterconf.ConfigFile]):
		return slinkyv1beta1.JobConfinementNone
	case s.promoted == nil && recorded != "":
		return recorded
	case s.isNew(), clusterconf.IsConfined(s.inForce()):
		return slinkyv1beta1.JobConfinementCgroups
	default:
		return slinkyv1beta1.JobConfinementNone
	}
}

// isNew reports whether no slurmd has been configured yet.
func (s *scope) isNew() bool { return s.promoted == nil && !s.hasSlurmds() }

// confines reports whether the configuration confines jobs: if it is to, all slurmd pods are prepared for it, and all
// slurmds run with cgroups.
func (s *scope) confines() bool {
	if s.confinement() != slinkyv1beta1.JobConfinementCgroups || s.unprepared > 0 {
		return false
	}
	return s.promoted == nil || clusterconf.IsConfined(s.inForce()) ||
		clusterconf.EnablesCgroups(s.promoted.files) && s.hasSettled()
}

// enablesCgroups reports whether cgroup.conf enables cgroups.
func (s *scope) enablesCgroups() bool {
	return s.podConfinement() == slinkyv1beta1.JobConfinementCgroups && s.unprepared == 0
}

// podConfinement returns what slurmd pods are prepared for. They stay prepared until all slurmds run with a
// configuration that does not confine jobs.
func (s *scope) podConfinement() slinkyv1beta1.JobConfinement {
	if s.promoted != nil && clusterconf.EnablesCgroups(s.promoted.files) &&
		(clusterconf.IsConfined(s.inForce()) || !s.hasSettled()) {
		return slinkyv1beta1.JobConfinementCgroups
	}
	return s.confinement()
}

// hasSettled reports whether all slurmds run with the configuration in force. What is being validated does not matter:
// otherwise the first step of a change would undo the reason for it.
func (s *scope) hasSettled() bool {
	for _, pod := range s.pods {
		report := s.agents[pod.Name]
		if report.RunningHash == s.promoted.hash && report.CheckedAt.Sub(report.RunningSince) < settleTime {
			return false
		}
	}
	inForce, _ := applied(s, s.promoted.hash)
	return inForce
}

// isSwitching reports whether the configuration changes once pods have been replaced or slurmds have settled.
func (s *scope) isSwitching() bool {
	return s.podConfinement() != s.confinement() ||
		s.confinement() == slinkyv1beta1.JobConfinementCgroups && !s.confines()
}

// observeSlurmds counts the slurmd pods that are not prepared for confinement, if the cluster is to become confined, or
// uses a cgroup.conf of another operator.
func (r *Reconciler) observeSlurmds(ctx context.Context, scope *scope) error {
	if scope.hasForeignCgroups() {
		return r.observeForeignSlurmds(ctx, scope)
	}
	if scope.confinement() != slinkyv1beta1.JobConfinementCgroups || scope.controller.Spec.External ||
		clusterconf.IsConfined(scope.inForce()) {
		return nil
	}
	pods := &corev1.PodList{}
	err := r.Client.List(ctx, pods, client.InNamespace(scope.controller.Namespace),
		client.MatchingLabels(naming.WorkerSelector(scope.controller.Name)), client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !podtemplate.IsConfinable(pod) ||
			scope.promoted != nil && pod.CreationTimestamp.Time.Before(scope.promoted.cgroupsDisabled) {
			scope.unprepared++
		}
	}
	return nil
}

// cgroupsDisabled returns when cgroups were disabled in a candidate; zero if they never were, or are enabled. A slurmd
// that has used cgroups, and then run without them, exits when they are enabled again: Slurm 24.11 does not find its
// own cgroup. So pods from before that are replaced first.
func cgroupsDisabled(scope *scope, candidate candidate) time.Time {
	switch {
	case scope.promoted == nil || clusterconf.EnablesCgroups(candidate.files):
		return time.Time{}
	case clusterconf.EnablesCgroups(scope.promoted.files):
		return scope.now
	default:
		return scope.promoted.cgroupsDisabled
	}
}

// confinementMessage describes what a cluster waits for before jobs are confined.
func (s *scope) confinementMessage() string {
	switch {
	case s.unprepared > 0:
		return fmt.Sprintf("; jobs are not confined yet: %d slurmd pods must be replaced first, each when its Slurm node is "+
			"drained (spec.jobConfinement)", s.unprepared)
	case s.confinement() == slinkyv1beta1.JobConfinementCgroups && !s.confines():
		return "; jobs are not confined yet: all slurmds must have adopted the cgroup.conf that enables cgroups first, which " +
			"takes up to " + settleTime.String() + " (spec.jobConfinement)"
	default:
		return ""
	}
}
