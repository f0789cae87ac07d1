package slurmconf

import (
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
)

// KeepPartitions adds the partitions that an earlier document had and this one does not, unless they may go, and returns their names.
//
// slurmctld ends every job of a partition that it loses, those that run and those that wait. So a partition first stays without taking
// new jobs (State=DRAIN), and may go when its last job has ended.
func KeepPartitions(document, earlier Document, mayGo func(name string) bool) (kept Document, leaving []string) {
	here, known := namesOf(document, partitionName), namesOf(document, nodeSet)
	for nodes := range namesOf(document, "NodeName") {
		for name := range hostlist.Names(nodes) {
			known[name] = true
		}
	}
	for entry := range earlier.All() {
		name := entry.Value()
		if !entry.Is(partitionName) || strings.EqualFold(name, "DEFAULT") || here[name] || mayGo(name) {
			continue
		}
		document.Append(drained(entry, known)...)
		leaving = append(leaving, name)
	}
	return document, leaving
}

const (
	partitionName = "PartitionName"
	nodeSet       = "NodeSet"
)

// namesOf are the names of the records of a kind.
func namesOf(document Document, key string) map[string]bool {
	names := map[string]bool{}
	for entry := range document.All() {
		if entry.Is(key) {
			names[entry.Value()] = true
		}
	}
	return names
}

// drained is a partition as it was, but that it takes no new jobs. Nodes that are not in the configuration any more go: slurmctld would refuse
// to start with them, while jobs do not mind.
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
