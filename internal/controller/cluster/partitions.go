package cluster

import (
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// A partition that the spec no longer has leaves in two steps, because slurmctld ends all jobs of a partition that it loses. First it
// takes no new jobs; when slurmctld runs with that, and after that no job is left in it, it goes.

// keepPartitions adds to a configuration the partitions that must not go yet.
func keepPartitions(scope *scope, document slurmconf.Document) (kept slurmconf.Document, leaving []string) {
	if scope.promoted == nil {
		return document, nil
	}
	return slurmconf.KeepPartitions(document, scope.promoted.document(), scope.mayGo)
}

// mayGo tells whether a partition takes no new jobs and was seen to have none after that.
func (s *scope) mayGo(partition string) bool {
	inForce, _ := applied(s, s.promoted.hash)
	return inForce && slices.Contains(s.promoted.leaving, partition) && s.queue != nil && isEmpty(s.queue, partition)
}

// isEmpty tells that a partition has no jobs. One that does not tell its partition may be in any.
func isEmpty(queue *slurm.Queue, partition string) bool {
	return queue.Partitions[partition] == 0 && queue.Partitions[""] == 0
}

// leavingMessage tells of partitions that are about to go.
func leavingMessage(names []string) string {
	if len(names) == 0 {
		return ""
	}
	list := strings.Join(names, ",")
	return "; no new jobs are taken in partition " + list + ", which is removed when its last job has ended (squeue --partition=" + list + ")"
}
