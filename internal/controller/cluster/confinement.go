package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// A running cluster becomes confined in steps: slurmctld leaves the choice of a cgroup.conf to the pods, each of which
// has its own, the NodeSets replace all slurmd pods by prepared ones, each when its Slurm node is drained, and then
// jobs are confined, with one cgroup.conf for all. In the other direction, jobs are no longer confined and pods have
// the choice, the pods follow, and then there is one cgroup.conf again. So whether slurmd uses cgroups at all never
// changes while its pod exists: a job that starts while slurmd changes from one cgroup.conf to another fails.

// settleTime is how long a slurmd may take at most to adopt new settings.
const settleTime = 2 * time.Minute

// confinement returns how jobs are to be confined. If the spec does not say it, they are in a new cluster, and stay as
// they are in another one. If its configuration is lost, the status still says how they are, and if that is lost too,
// because the Controller was created again, its pods do.
func (s *scope) confinement() slinkyv1beta1.JobConfinement {
	chosen, recorded := s.controller.Spec.JobConfinement, s.controller.Status.JobConfinement
	switch {
	case chosen != "":
		return chosen
	case !s.managesCgroups():
		return slinkyv1beta1.JobConfinementNone
	case s.promoted == nil && recorded != "":
		return recorded
	case s.promoted == nil && s.prepared > 0 && s.unprepared == 0:
		return slinkyv1beta1.JobConfinementCgroups
	case s.isNew(), clusterconf.IsConfined(s.inForce()):
		return slinkyv1beta1.JobConfinementCgroups
	default:
		return slinkyv1beta1.JobConfinementNone
	}
}

// isNew reports whether no slurmd has been configured yet.
func (s *scope) isNew() bool { return s.promoted == nil && !s.hasSlurmds() }

// managesCgroups reports whether the operator decides how Slurm uses cgroups, and not the administrator.
func (s *scope) managesCgroups() bool {
	return !s.controller.Spec.External &&
		!clusterconf.ConfiguresCgroups(s.controller.Spec.ExtraConf, s.files[clusterconf.ConfigFile])
}

// cgroupConf returns the cgroup.conf for all slurmds: one that leaves the choice to the pods, until all of them have
// chosen the same. Pods without a cgroup.conf of their own, such as those of an earlier release, keep the one that they
// were started with.
func (s *scope) cgroupConf() string {
	wanted := fixedCgroupConf(s.confinement())
	switch inForce := s.cgroupConfInForce(); {
	case s.keepsCgroups(), s.isNew(), !s.managesCgroups() && s.unprepared == 0:
		return wanted
	case !s.managesCgroups():
		return slurmconf.CgroupsDisabled
	case s.fileless > 0 && inForce == slurmconf.CgroupsEnabled:
		return slurmconf.CgroupsEnabled
	case s.fileless > 0:
		return slurmconf.CgroupsDisabled
	case wanted == slurmconf.CgroupsEnabled && s.confines(), wanted == slurmconf.CgroupsDisabled && s.isUnprepared():
		return wanted
	default:
		return slurmconf.IncludePodCgroup
	}
}

// fixedCgroupConf returns the cgroup.conf for all slurmds of a cluster that does not change.
func fixedCgroupConf(mode slinkyv1beta1.JobConfinement) string {
	if mode == slinkyv1beta1.JobConfinementCgroups {
		return slurmconf.CgroupsEnabled
	}
	return slurmconf.CgroupsDisabled
}

// keepsCgroups reports whether the settings in force are those that are wanted.
func (s *scope) keepsCgroups() bool {
	wanted := s.confinement()
	return s.promoted != nil && s.cgroupConfInForce() == fixedCgroupConf(wanted) &&
		clusterconf.IsConfined(s.inForce()) == (wanted == slinkyv1beta1.JobConfinementCgroups)
}

// isUnprepared reports whether no pod is prepared for confinement, or will be.
func (s *scope) isUnprepared() bool {
	return s.prepared == 0 && !clusterconf.IsConfined(s.inForce()) &&
		s.controller.Status.JobConfinement != slinkyv1beta1.JobConfinementCgroups
}

// cgroupConfInForce returns the cgroup.conf in force; empty if there is none.
func (s *scope) cgroupConfInForce() string {
	if s.promoted == nil {
		return ""
	}
	return s.promoted.files[clusterconf.CgroupFile]
}

// confines reports whether the configuration confines jobs: if it is to, and all slurmd pods are prepared for it.
func (s *scope) confines() bool {
	if s.confinement() != slinkyv1beta1.JobConfinementCgroups || s.unprepared > 0 {
		return false
	}
	return s.promoted == nil || clusterconf.IsConfined(s.inForce()) || s.preparesPods() || !s.managesCgroups()
}

// preparesPods reports whether the status says that pods are prepared for confinement, and each chooses its own
// cgroup.conf.
func (s *scope) preparesPods() bool {
	return s.cgroupConfInForce() == slurmconf.IncludePodCgroup &&
		s.controller.Status.JobConfinement == slinkyv1beta1.JobConfinementCgroups
}

// podConfinement returns what slurmd pods are prepared for. They become so when slurmctld has a cgroup.conf that leaves
// the choice to them, and stay so until all slurmds run with a configuration that does not confine jobs.
func (s *scope) podConfinement() slinkyv1beta1.JobConfinement {
	wanted := s.confinement()
	if s.promoted == nil || !s.managesCgroups() {
		return wanted
	}
	inForce := s.cgroupConfInForce()
	if clusterconf.IsConfined(s.inForce()) || inForce == slurmconf.CgroupsEnabled {
		return slinkyv1beta1.JobConfinementCgroups
	}
	is := slinkyv1beta1.JobConfinementNone
	if s.preparesPods() {
		is = slinkyv1beta1.JobConfinementCgroups
	}
	if wanted == is || inForce == slurmconf.IncludePodCgroup && s.hasSettled(settleTime) {
		return wanted
	}
	return is
}

// hasSettled reports whether all slurmds run with the configuration in force. What is being validated does not matter:
// otherwise the first step of a change would undo the reason for it.
func (s *scope) hasSettled(length time.Duration) bool {
	for _, pod := range s.pods {
		report := s.agents[pod.Name]
		if report.RunningHash == s.promoted.hash && report.CheckedAt.Sub(report.RunningSince) < length {
			return false
		}
	}
	inForce, _ := applied(s, s.promoted.hash)
	return inForce
}

// isSwitching reports whether the configuration changes once pods have been replaced or slurmds have settled.
func (s *scope) isSwitching() bool {
	return s.podConfinement() != s.confinement() || s.awaitsPods() ||
		s.managesCgroups() && s.promoted != nil && !s.keepsCgroups()
}

// awaitsPods reports whether jobs are to be confined, and are not yet.
func (s *scope) awaitsPods() bool {
	return s.confinement() == slinkyv1beta1.JobConfinementCgroups && !s.confines()
}

// observeSlurmds counts the slurmd pods by how they are prepared, if the settings change or are those of another
// operator, whose pods may not have this operator's labels yet.
func (r *Reconciler) observeSlurmds(ctx context.Context, scope *scope) error {
	becomesConfined := scope.confinement() == slinkyv1beta1.JobConfinementCgroups &&
		!clusterconf.IsConfined(scope.inForce())
	if scope.controller.Spec.External || scope.keepsCgroups() || !scope.managesCgroups() && !becomesConfined {
		return nil
	}
	pods := &corev1.PodList{}
	err := r.Client.List(ctx, pods, client.InNamespace(scope.controller.Namespace),
		client.MatchingLabels(naming.DaemonSelector(naming.Slurmd)), client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !scope.owns(pod) {
			continue
		}
		if !podtemplate.HasCgroupConf(pod) {
			scope.fileless++
		}
		if podtemplate.IsConfinable(pod) {
			scope.prepared++
		} else {
			scope.unprepared++
		}
	}
	if scope.hasForeignCgroups() {
		scope.foreignSlurmds = scope.unprepared
	}
	return nil
}

// owns reports whether a slurmd pod is one of the cluster's.
func (s *scope) owns(pod *corev1.Pod) bool {
	return pod.Labels[naming.LabelController] == s.controller.Name ||
		slices.ContainsFunc(s.nodeSets, func(set slinkyv1beta1.NodeSet) bool { return metav1.IsControlledBy(pod, &set) })
}

// confinementMessage describes what a cluster waits for before jobs are confined.
func (s *scope) confinementMessage() string {
	switch {
	case !s.awaitsPods():
		return ""
	case s.unprepared > 0:
		return fmt.Sprintf("; jobs are not confined yet: %d slurmd pods must be replaced first, each when its Slurm node is "+
			"drained (spec.jobConfinement)", s.unprepared)
	default:
		return "; jobs are not confined yet: all slurmds must have adopted a cgroup.conf of their own first, which takes " +
			"up to " + settleTime.String() + " (spec.jobConfinement)"
	}
}
