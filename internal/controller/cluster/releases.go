package cluster

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// slurmctld sends its configuration to all slurmds. An older slurmd that does not know a key exits, and all its jobs
// fail. So after an upgrade of slurmctld, keys of the new release are held back until all slurmds are upgraded.

// holdBack removes the keys from a configuration that older slurmds do not know.
func holdBack(scope *scope, document slurmconf.Document) (kept slurmconf.Document, held []string) {
	var inForce slurmconf.Document
	switch {
	case scope.promoted != nil:
		inForce = scope.promoted.document()
	case !scope.hasSlurmds():
		return document, nil
	}
	return slurmconf.HoldBack(document, inForce, func(release string) bool {
		age, known := compare(scope.slurmVersion, release)
		refuses := known && age < 0 // and reports the error better than the operator can
		return !refuses && scope.hasOlderSlurmd(release)
	})
}

// hasSlurmds reports whether slurmds run. Before the first configuration, they do if slurmctld is being restored.
func (s *scope) hasSlurmds() bool {
	return slices.ContainsFunc(s.nodeSets, func(set slinkyv1beta1.NodeSet) bool { return set.Status.ReadyReplicas > 0 })
}

// hasOlderSlurmd reports whether a slurmd may be older than a release. An unknown release counts as older: while Slurm
// does not answer, and after a restart of slurmctld, which forgets the releases of its slurmds until they register
// again.
func (s *scope) hasOlderSlurmd(release string) bool {
	return s.nodes == nil || slices.ContainsFunc(s.nodes.Nodes, func(node *slurm.Node) bool {
		if age, known := compare(node.Version, release); known {
			return age < 0
		}
		return !isAbsent(node)
	})
}

// lacksReleases reports whether slurmctld does not know the release of a slurmd, as for a moment after a reconfigure.
func (s *scope) lacksReleases() bool {
	return s.nodes == nil || slices.ContainsFunc(s.nodes.Nodes,
		func(node *slurm.Node) bool { return node.Version == "" && !isAbsent(node) })
}

// isAbsent reports whether a Slurm node has no slurmd that slurmctld knows, and therefore no jobs.
func isAbsent(node *slurm.Node) bool {
	away := node.State == slurm.StateDown || node.State == slurm.StateFuture || node.Flags.Has(slurm.FlagPoweredDown)
	return away && node.Version == ""
}

// compare compares the release of a daemon, if it is known, with another one.
func compare(release, other string) (age int, known bool) {
	first, err := slurm.ParseVersion(release)
	if err != nil {
		return 0, false
	}
	second, err := slurm.ParseVersion(other)
	return first.Compare(second), err == nil
}

// releaseProblem returns why slurmctld must not be replaced by that of the wanted image, if so. The throwaway slurmctld
// of a validation run has no saved state, so it does not notice. Without validation runs, the release of an image is
// not known, and slurmctld itself refuses to start.
func releaseProblem(scope *scope) *status.Verdict {
	wanted, err := slurm.ParseVersion(scope.slurmVersion)
	if err != nil {
		return nil
	}
	if state, known := scope.stateRelease(); known && !wanted.Understands(state) {
		remedy := "upgrade to " + state.LastToUnderstand() + " first"
		if state.IsLater(wanted) {
			remedy = "set the image back, or see docs/backup.md for how to restore a backup from before the upgrade"
		}
		return status.Problem(slinkyv1beta1.ReasonIncompatibleRelease, "slurmctld %s of image %s cannot read the saved "+
			"state, which is of release %s: it would not start; %s", wanted, scope.image, state, remedy)
	}
	if scope.nodes == nil {
		return nil
	}
	for _, node := range scope.nodes.Nodes {
		if is, err := slurm.ParseVersion(node.Version); err == nil && !isAbsent(node) && wanted.IsLater(is) &&
			!wanted.Understands(is) {
			return status.Problem(slinkyv1beta1.ReasonIncompatibleRelease, "slurmctld %s of image %s does not talk to the "+
				"slurmd %s of node %s, whose jobs would be lost; upgrade its NodeSet first, at most to the release of "+
				"slurmctld (sinfo --format='%%n %%v' shows the releases)", wanted, scope.image, is, node.Name)
		}
	}
	return nil
}

// stateRelease returns the release of the slurmctld that last wrote the saved state, as far as it is known. A slurmctld
// that answers has read that state and writes it. One that has started may have written it; one that was promoted and
// has never started has not.
func (s *scope) stateRelease() (slurm.Version, bool) {
	switch {
	case s.isForeign():
		return slurm.Latest(s.foreignReleases())
	case s.claim == "": // the state ends with its pod
		return slurm.Version{}, false
	}
	var answering, started []string
	for i := range s.pods {
		pod := &s.pods[i]
		answering = append(answering, s.agents[pod.Name].SlurmVersion)
		if hasRun(pod) {
			started = append(started, pod.Annotations[annotationVersion])
		}
	}
	if _, answers := slurm.Latest(answering); answers {
		return slurm.Latest(append(answering, started...))
	}
	return slurm.Latest(append(started, s.recordedRelease()))
}

// mayHaveRun reports whether slurmctld may have run in a pod.
func mayHaveRun(pod *corev1.Pod) bool { return pod.Status.Phase != corev1.PodPending || hasRun(pod) }

// hasRun reports whether slurmctld has ever run in a pod.
func hasRun(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(container corev1.ContainerStatus) bool {
		return container.Name == containerSlurmctld &&
			(container.State.Waiting == nil || container.LastTerminationState.Terminated != nil)
	})
}

// recordedRelease returns the release of the saved state when the StatefulSet was last applied. An operator of an
// earlier version did not record the release: the promoted slurmctld then counts as started.
func (s *scope) recordedRelease() string {
	if s.statefulSet != nil {
		if release, recorded := s.statefulSet.Annotations[annotationStateRelease]; recorded {
			return release
		}
	}
	if s.promoted == nil {
		return ""
	}
	return s.promoted.slurmVersion
}

// releaseToRecord returns the release of the saved state; empty if it is not known.
func (s *scope) releaseToRecord() string {
	if release, known := s.stateRelease(); known {
		return release.String()
	}
	return ""
}

// releaseIn returns the release of Slurm in an image; empty if it is not known.
func (s *scope) releaseIn(image string) string {
	switch {
	case s.promoted != nil && s.promoted.image == image:
		return s.promoted.slurmVersion
	case image == s.image:
		return s.slurmVersion
	}
	return ""
}

// foreignReleases returns the releases of another operator's slurmctlds, as far as the tags of their images show them.
func (s *scope) foreignReleases() []string {
	var specs []*corev1.PodSpec
	if s.statefulSet != nil {
		specs = append(specs, &s.statefulSet.Spec.Template.Spec)
	}
	for _, pod := range s.foreignPods() {
		specs = append(specs, &pod.Spec)
	}
	var releases []string
	for _, spec := range specs {
		for _, container := range spec.Containers {
			if container.Name == containerSlurmctld {
				releases = append(releases, slurm.ReleaseOfImage(container.Image))
			}
		}
	}
	return releases
}

// heldMessage describes the keys that are held back.
func heldMessage(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return "; left out until the last older slurmd is gone, which would exit because of it, with its jobs: " +
		strings.Join(keys, ", ") +
		" (sinfo --format='%n %v' shows the releases)"
}

// observeNodes takes the snapshot of the Slurm nodes, but only while Slurm answers: otherwise others may have
// registered since.
func (r *Reconciler) observeNodes(_ context.Context, scope *scope) error {
	session, connected := r.Pool.Get(slurm.Key{Namespace: scope.controller.Namespace, Name: scope.controller.Name})
	if connected && session.Status().Reachable {
		scope.nodes = session.Mirror.Snapshot()
	}
	return nil
}
