package clusterconf

import (
	"cmp"
	"slices"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// A NodeSet is named in Slurm after the prefix of its host names, or after itself if it has none. Jobs are in its
// partition and running slurmds have its feature, so a NodeSet keeps the name that it has: neither another version of
// the operator nor another NodeSet changes it.

// SlurmNames returns the names of a cluster's NodeSets in slurm.conf, by the names of the custom resources. A NodeSet
// is missing if its only name is that of another one. inForce and written are the slurm.conf in force and the
// Controller's extraConf.
func SlurmNames(sets []slinkyv1beta1.NodeSet, inForce, written slurmconf.Document) map[string]string {
	oldestFirst := make([]*slinkyv1beta1.NodeSet, len(sets))
	exists := map[string]bool{}
	for i := range sets {
		oldestFirst[i], exists[sets[i].Name] = &sets[i], true
	}
	slices.SortFunc(oldestFirst, func(a, b *slinkyv1beta1.NodeSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	names, taken := map[string]string{}, map[string]bool{}
	for _, choose := range []func(*slinkyv1beta1.NodeSet) string{
		func(set *slinkyv1beta1.NodeSet) string { return currentName(set, exists, inForce, written) },
		func(set *slinkyv1beta1.NodeSet) string {
			if group := naming.WorkerGroup(set); !exists[group] {
				return group
			}
			return ""
		},
		func(set *slinkyv1beta1.NodeSet) string { return set.Name },
	} {
		for _, set := range oldestFirst {
			name := choose(set)
			if names[set.Name] != "" || name == "" || taken[name] ||
				name != set.Name && !slurmconf.IsNodeSetName(name) {
				continue
			}
			names[set.Name], taken[name] = name, true
		}
	}
	return names
}

// currentName returns the name that a NodeSet has in a running cluster; empty if it has none yet, or if its host names
// have changed since. The annotation has it, unless the configuration in force is that of an older version.
func currentName(set *slinkyv1beta1.NodeSet, exists map[string]bool, inForce, written slurmconf.Document) string {
	group := naming.WorkerGroup(set)
	switch recorded := set.Annotations[slinkyv1beta1.AnnotationSlurmName]; {
	case recorded == set.Name, recorded == group:
		return recorded
	case recorded != "", !slurmconf.Defines(inForce, nodeSetKey, set.Name):
		return ""
	}
	_, hasPartition := slurmconf.PartitionInForce(inForce, set.Name)
	hasPartition = hasPartition && !slurmconf.Defines(written, partitionKey, set.Name)
	isOwn := slurmconf.Defines(inForce, nodeSetKey, group) && !slurmconf.Defines(written, nodeSetKey, group) &&
		!exists[group]
	if isOwn && !hasPartition {
		return group
	}
	return set.Name
}

const (
	nodeSetKey   = "NodeSet"
	partitionKey = "PartitionName"
)

// NameToRecord returns the value that the annotation with a NodeSet's name in Slurm must get, if it must change. A
// NodeSet without a prefix of host names needs none.
func NameToRecord(set *slinkyv1beta1.NodeSet, names map[string]string) (name string, changes bool) {
	name, recorded := names[set.Name], set.Annotations[slinkyv1beta1.AnnotationSlurmName]
	needed := recorded != "" || naming.WorkerGroup(set) != set.Name
	return name, needed && name != "" && name != recorded
}
