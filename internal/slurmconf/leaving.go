package slurmconf

import (
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
)

// KeepPartitions adds the partitions that an earlier document had and this one does not, unless they are removable, and
// returns their names.
//
// slurmctld kills every job of a partition that is removed from its configuration, running or pending. So a removed
// partition first stays without accepting new jobs (State=DRAIN), and is dropped when its last job has ended.
func KeepPartitions(document, earlier Document, removable func(name string) bool) (kept Document, draining []string) {
	here, known := namesOf(document, partitionName), namesOf(document, nodeSet)
	for nodes := range namesOf(document, nodeName) {
		for name := range hostlist.Names(nodes) {
			known[name] = true
		}
	}
	for entry := range earlier.All() {
		name := entry.Value()
		if !entry.Is(partitionName) || strings.EqualFold(name, "DEFAULT") || here[name] || removable(name) {
			continue
		}
		document.Append(drained(entry, known)...)
		draining = append(draining, name)
	}
	return document, draining
}

const (
	partitionName = "PartitionName"
	nodeSet       = "NodeSet"
)

// namesOf returns the names of the records with a key.
func namesOf(document Document, key string) map[string]bool {
	names := map[string]bool{}
	for entry := range document.All() {
		if entry.Is(key) {
			names[entry.Value()] = true
		}
	}
	return names
}

// drained returns a partition that accepts no new jobs. Nodes that are no longer in the configuration are removed:
// slurmctld would refuse to start with them, and jobs do not depend on them.
func drained(partition Entry, known map[string]bool) []Pair {
	var pairs []Pair
	for _, pair := range partition.Pairs {
		switch strings.ToLower(pair.Key) {
		case "state", "default", "alternate":
			continue
		case "nodes":
			var nodes []string
			for name := range hostlist.Names(pair.Value) {
				if known[name] || strings.EqualFold(name, "ALL") {
					nodes = append(nodes, name)
				}
			}
			if pair.Value = strings.Join(nodes, ","); pair.Value == "" {
				continue
			}
		}
		pairs = append(pairs, pair)
	}
	return append(pairs, Pair{"State", "DRAIN"})
}
