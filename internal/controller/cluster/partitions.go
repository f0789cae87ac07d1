package cluster

import (
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// A partition that was removed from the spec is removed in two steps, because slurmctld kills all jobs of a removed
// partition. First the partition is drained, so that it accepts no new jobs. It is removed when slurmctld runs with
// that configuration and was seen to have no jobs in the partition afterwards.

// keepPartitions adds the partitions to a configuration that must not be removed yet.
func keepPartitions(scope *scope, document slurmconf.Document) (kept slurmconf.Document, leaving []string) {
	if scope.promoted == nil {
		return document, nil
	}
	return slurmconf.KeepPartitions(document, scope.promoted.document(), scope.mayRemove)
}

// mayRemove reports whether a partition accepts no new jobs and was seen to have no jobs after that.
func (s *scope) mayRemove(partition string) bool {
	inForce, _ := applied(s, s.promoted.hash)
	return inForce && slices.Contains(s.promoted.leaving, partition) && s.queue != nil && isEmpty(s.queue, partition)
}

// isEmpty reports whether a partition has no jobs. A job without a known partition may be in any.
func isEmpty(queue *slurm.Queue, partition string) bool {
	return queue.Partitions[partition] == 0 && queue.Partitions[""] == 0
}

// leavingMessage describes the partitions that are being removed.
func leavingMessage(names []string) string {
	if len(names) == 0 {
		return ""
	}
	list := strings.Join(names, ",")
	return "; no new jobs are taken in partition " + list +
		", which is removed when its last job has ended (squeue --partition=" + list + ")"
}
