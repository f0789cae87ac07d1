package desired

import (
	"slices"
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// HasPartition reports whether slurmctld has the partition that a NodeSet asks for, with all its parameters, given its
// slurm.conf and the hash of the configuration that it runs with. The partition is named after the NodeSet, or after
// the prefix of its host names.
func HasPartition(set *slinkyv1beta1.NodeSet, conf, runningHash string) bool {
	wanted, err := slurmconf.ParsePartition(set.Spec.Partition.Config)
	if err != nil {
		return false // the Controller reports it
	}
	document, running := runningConf(conf, runningHash)
	if !running {
		return false
	}
	for _, name := range []string{set.Name, naming.WorkerGroup(set)} {
		config, found := slurmconf.PartitionInForce(document, name)
		inForce, err := slurmconf.ParsePartition(config)
		if found && err == nil && !slices.ContainsFunc(wanted, func(pair slurmconf.Pair) bool {
			return !slices.ContainsFunc(inForce, func(other slurmconf.Pair) bool {
				return strings.EqualFold(pair.Key, other.Key) && pair.Value == other.Value
			})
		}) {
			return true
		}
	}
	return false
}

// runningConf parses slurm.conf, and reports whether it belongs to the configuration with a hash.
func runningConf(conf, hash string) (document slurmconf.Document, running bool) {
	document, err := slurmconf.Parse(conf)
	parameters, _ := document.Get("SlurmctldParameters")
	return document, err == nil && hash != "" && slurmconf.HashOf(parameters) == hash
}
