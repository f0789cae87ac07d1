package desired

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/schedule"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Elastic returns what package plan needs to know of an elastic NodeSet, given the slurm.conf of its cluster, the part
// of it that the administrator has written, and the hash of the configuration that slurmctld runs with.
func Elastic(set *slinkyv1beta1.NodeSet, conf, written, runningHash string) *plan.Elastic {
	spec := set.Spec.Elastic
	elastic := &plan.Elastic{
		Min: int(spec.MinReplicas), Warm: int(spec.WarmReplicas), Max: int(spec.MaxReplicas),
		Idle: cmp.Or(spec.IdleTimeout.Duration, defaultTimeout), Start: clusterconf.StartTimeout(spec),
		Backoff: cmp.Or(spec.CapacityBackoff.Duration, defaultTimeout),
	}
	elastic.Schedules, _ = schedule.Of(spec)     // the NodeSet's status reports errors
	document, _ := slurmconf.Parse(conf)         // the operator wrote it
	administrator, _ := slurmconf.Parse(written) // the Controller's status reports errors
	inForce := slurmconf.RecordsInForce(document, administrator)
	parameters, _ := document.Get("SlurmctldParameters")
	pending := runningHash == "" || slurmconf.HashOf(parameters) != runningHash
	node, invalid := nodeconf.Of(set) // the NodeSet's status reports it
	wanted := node.Parameters()
	for ordinal := range elastic.Max {
		name := naming.WorkerHost(set, ordinal)
		present, exists := inForce[name]
		elastic.Slots = append(elastic.Slots, plan.Slot{
			Ordinal: ordinal, SlurmNode: name, Pending: pending,
			Outdated: exists && invalid == nil && !slices.Equal(present, wanted),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(inForce)) {
		if ordinal, own := slotOf(set, name); own && ordinal >= elastic.Max {
			elastic.Slots = append(elastic.Slots, plan.Slot{
				Ordinal: ordinal, SlurmNode: name, Pending: pending, Outdated: true,
			})
		}
	}
	slices.SortFunc(elastic.Slots, func(a, b plan.Slot) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return elastic
}

// defaultTimeout is the default of the timeouts, for objects that are not from an API server.
const defaultTimeout = 10 * time.Minute

// slotOf returns the ordinal of a Slurm node, if it is one of the NodeSet.
func slotOf(set *slinkyv1beta1.NodeSet, name string) (ordinal int, own bool) {
	prefix := strings.TrimRight(naming.WorkerHost(set, 0), "0")
	digits, found := strings.CutPrefix(name, prefix)
	ordinal, err := strconv.Atoi(digits)
	return ordinal, found && err == nil && ordinal >= 0 && naming.WorkerHost(set, ordinal) == name
}

// HasSlurmNode reports whether a Slurm node is one of an elastic NodeSet, with or without a pod.
func HasSlurmNode(set *slinkyv1beta1.NodeSet, name string) bool {
	if set.Spec.Elastic == nil {
		return false
	}
	_, own := slotOf(set, name)
	return own
}
