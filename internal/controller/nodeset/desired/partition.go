package desired

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// A PartitionState is how the partition with which slurmctld runs compares to that of a NodeSet's spec.
type PartitionState string

const (
	// PartitionInForce means that they are the same.
	PartitionInForce PartitionState = ""
	// PartitionDiffers means that slurmctld runs without it, with other parameters, or with one that was removed.
	PartitionDiffers PartitionState = "Differs"
	// PartitionLeaves means that one that was removed accepts no new jobs, and is dropped after its last one.
	PartitionLeaves PartitionState = "Leaves"
)

// Partition returns the state of a NodeSet's partition, given the Controller's extraConf, the slurm.conf of slurmctld,
// and the hash of the configuration that it runs with. The partition is named after the NodeSet, or after the prefix of
// its host names.
func Partition(set *slinkyv1beta1.NodeSet, extraConf, conf, runningHash string) PartitionState {
	document, running := runningConf(conf, runningHash)
	if !set.Spec.Partition.Enabled {
		return removedPartition(set, slurmconf.Written(extraConf), document, running || runningHash == "")
	}
	wanted, err := slurmconf.ParsePartition(set.Spec.Partition.Config)
	if err != nil || !running {
		return PartitionDiffers // the Controller reports the error
	}
	for _, name := range []string{set.Name, naming.WorkerGroup(set)} {
		config, found := slurmconf.PartitionInForce(document, name)
		inForce, err := slurmconf.ParsePartition(config)
		if found && err == nil && hasAll(inForce, wanted) && hasAll(slices.Concat(wanted, defaults(set)), inForce) {
			return PartitionInForce
		}
	}
	return PartitionDiffers
}

// SlurmName returns the name of a NodeSet in slurm.conf, which is also that of its partition.
func SlurmName(set *slinkyv1beta1.NodeSet) string {
	return cmp.Or(set.Annotations[slinkyv1beta1.AnnotationSlurmName], set.Name)
}

// removedPartition returns the state of a partition that the NodeSet must not have. The administrator may have one of
// that name.
func removedPartition(set *slinkyv1beta1.NodeSet, written, document slurmconf.Document, running bool) PartitionState {
	name := SlurmName(set)
	config, found := slurmconf.PartitionInForce(document, name)
	if _, own := slurmconf.PartitionInForce(written, name); own || !found && running {
		return PartitionInForce
	}
	if inForce, err := slurmconf.ParsePartition(config); running && err == nil &&
		hasAll(inForce, []slurmconf.Pair{{Key: "State", Value: "DRAIN"}}) {
		return PartitionLeaves
	}
	return PartitionDiffers
}

// defaults returns the parameters that the Controller may add to a NodeSet's partition.
func defaults(set *slinkyv1beta1.NodeSet) []slurmconf.Pair {
	node, _ := nodeconf.Of(set) // the NodeSet's status reports the error
	return []slurmconf.Pair{
		{Key: "OverSubscribe", Value: "EXCLUSIVE"}, {Key: "DefMemPerCPU", Value: strconv.Itoa(node.MemoryPerCPU())},
	}
}

// hasAll reports whether all parameters of some are among others.
func hasAll(others, some []slurmconf.Pair) bool {
	return !slices.ContainsFunc(some, func(pair slurmconf.Pair) bool {
		return !slices.ContainsFunc(others, func(other slurmconf.Pair) bool {
			return strings.EqualFold(pair.Key, other.Key) && pair.Value == other.Value
		})
	})
}

// runningConf parses slurm.conf, and reports whether it belongs to the configuration with a hash.
func runningConf(conf, hash string) (document slurmconf.Document, running bool) {
	document, err := slurmconf.Parse(conf)
	parameters, _ := document.Get("SlurmctldParameters")
	return document, err == nil && hash != "" && slurmconf.HashOf(parameters) == hash
}
