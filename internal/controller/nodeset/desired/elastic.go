package desired

import (
	"cmp"
	"slices"
	"strings"
	"time"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/schedule"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Elastic returns what package plan needs to know of an elastic NodeSet, given the slurm.conf of its cluster, and the
// hash of the configuration that slurmctld runs with.
func Elastic(set *slinkyv1beta1.NodeSet, conf, runningHash string) *plan.Elastic {
	spec := set.Spec.Elastic
	elastic := &plan.Elastic{
		Min: int(spec.MinReplicas), Warm: int(spec.WarmReplicas), Max: int(spec.MaxReplicas),
		Idle: cmp.Or(spec.IdleTimeout.Duration, defaultTimeout), Start: clusterconf.StartTimeout(spec),
		Backoff: cmp.Or(spec.CapacityBackoff.Duration, defaultTimeout),
	}
	elastic.Schedules, _ = schedule.Of(spec) // the NodeSet's status reports errors
	inForce, pending := recordsInForce(conf, runningHash)
	node, invalid := nodeconf.Of(set) // the NodeSet's status reports it
	wanted := node.Parameters()
	for ordinal := range elastic.Max {
		name := naming.WorkerHost(set, ordinal)
		present, exists := inForce[name]
		elastic.Slots = append(elastic.Slots, plan.Slot{
			Ordinal: ordinal, SlurmNode: name, Pending: pending,
			Outdated:   exists && invalid == nil && !slices.Equal(present, wanted),
			Mismatched: exists && invalid == nil && !slices.Equal(promised(present), promised(wanted)),
		})
	}
	ordinalOf := naming.WorkerOrdinals(set)
	for name, present := range inForce {
		if ordinal, own := ordinalOf(name); own && ordinal >= elastic.Max {
			elastic.Slots = append(elastic.Slots, plan.Slot{
				Ordinal: ordinal, SlurmNode: name, Pending: pending, Outdated: true,
				Mismatched: invalid != nil || !slices.Equal(promised(present), promised(wanted)),
			})
		}
	}
	sortSlots(elastic.Slots)
	return elastic
}

// promised returns what a record promises to jobs: all but the weight, which only orders nodes.
func promised(record []slurmconf.Pair) []slurmconf.Pair {
	return slices.DeleteFunc(slices.Clone(record), func(pair slurmconf.Pair) bool {
		return strings.EqualFold(pair.Key, "Weight")
	})
}

// EndedElastic returns what package plan needs to know of a NodeSet that is no longer elastic, given the slurm.conf of
// its cluster as above, and the Slurm nodes that slurmctld has; nil if no record is left. A record is also left if only
// slurmctld has it: it has not read its new configuration yet.
func EndedElastic(set *slinkyv1beta1.NodeSet, conf, runningHash string, nodes []*slurm.Node) *plan.Elastic {
	ordinalOf, left := naming.WorkerOrdinals(set), map[string]int{}
	for _, node := range nodes {
		if !node.Flags.Has(slurm.FlagCloud) || node.Flags.Has(slurm.FlagDynamicNorm) {
			continue
		}
		if ordinal, own := ordinalOf(node.Name); own {
			left[node.Name] = ordinal
		}
	}
	if len(left) == 0 && !slurmconf.HasRecords(conf) {
		return nil
	}
	inForce, pending := recordsInForce(conf, runningHash)
	for name := range inForce {
		if ordinal, own := ordinalOf(name); own {
			left[name] = ordinal
		}
	}
	if len(left) == 0 {
		return nil
	}
	elastic := &plan.Elastic{Ended: true, Idle: defaultTimeout, Start: defaultTimeout, Backoff: defaultTimeout}
	for name, ordinal := range left {
		elastic.Slots = append(elastic.Slots, plan.Slot{
			Ordinal: ordinal, SlurmNode: name, Pending: pending, Outdated: true, Mismatched: true,
		})
	}
	sortSlots(elastic.Slots)
	return elastic
}

// recordsInForce returns the records of elastic nodes in a slurm.conf, and whether slurmctld does not run with it yet.
func recordsInForce(conf, runningHash string) (records map[string][]slurmconf.Pair, pending bool) {
	document, _ := slurmconf.Parse(conf) // the operator wrote it
	parameters, _ := document.Get("SlurmctldParameters")
	return slurmconf.RecordsInForce(document),
		runningHash == "" || slurmconf.HashOf(parameters) != runningHash
}

func sortSlots(slots []plan.Slot) {
	slices.SortFunc(slots, func(a, b plan.Slot) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
}

// defaultTimeout is the default of the timeouts, for objects that are not from an API server.
const defaultTimeout = 10 * time.Minute
