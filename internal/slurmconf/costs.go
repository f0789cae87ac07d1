package slurmconf

import (
	"slices"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
)

// Costs are the changes of the configuration in force that would cost jobs. The operator holds them back, except for
// keys whose change an administrator wants in spite of it.
type Costs struct {
	Keys []CostlyChange `json:"keys,omitempty"`
	// Nodes are Slurm nodes whose lines change or are removed, as a hostlist expression; at most one.
	Nodes []CostlyNodes `json:"nodes,omitempty"`
	// GresTypes are removed types, which stay until no node has them.
	GresTypes []string `json:"gresTypes,omitempty"`
	// Partitions are removed partitions, which stay, without accepting new jobs, until their last job has ended.
	Partitions []string `json:"partitions,omitempty"`
}

// A CostlyChange is a change of a key that costs jobs.
type CostlyChange struct {
	Key     string `json:"key"`
	InForce string `json:"inForce"`
	Wanted  string `json:"wanted"`
	// Despite is true if the change is made while jobs run. Otherwise it waits.
	Despite bool `json:"despiteJobs,omitempty"`
}

// CostlyNodes are nodes whose lines change.
type CostlyNodes struct {
	Names string `json:"names"`
	// Despite is true if the lines change while jobs run. Otherwise each waits until its node is drained and has no job,
	// or no job runs.
	Despite bool `json:"despiteJobs,omitempty"`
}

// CostsPending reports whether the change also concerns jobs that do not run yet.
func (c CostlyChange) CostsPending() bool { return c.Key == maxJobCount.key }

// CostsOf returns what a document changes at the cost of jobs. Keys that are excepted change nevertheless.
func CostsOf(document, inForce Document, excepted []string) Costs {
	var costs Costs
	_, keys := KeepForJobs(document, inForce, nil)
	if _, lowers := KeepMaxJobCount(document, inForce); lowers {
		keys = append(keys, maxJobCount.key)
	}
	for _, key := range keys {
		costs.Keys = append(costs.Keys, CostlyChange{
			key, costlyValue(inForce, key), costlyValue(document, key), contains(excepted, key),
		})
	}
	if _, nodes := KeepNodes(document, inForce, never, always); len(nodes.Kept) > 0 {
		costs.Nodes = []CostlyNodes{{hostlist.Text(nodes.Kept), contains(excepted, NodeLines)}}
	}
	costs.GresTypes = without(typesOf(inForce), typesOf(document))
	_, costs.Partitions = KeepPartitions(document, inForce, never)
	return costs
}

// What may be changed depends on Slurm's nodes and jobs.
func never(string) bool  { return false }
func always(string) bool { return true }

// costlyValue returns the value that Slurm uses for one of the keys whose change costs jobs; empty if there is none.
func costlyValue(document Document, key string) string {
	for _, costly := range append(costlyKeys, maxJobCount) {
		if costly.key == key {
			return costly.in(document)
		}
	}
	value, _ := document.Get(key)
	return value
}

// Without returns the costs that are not among others.
func (c Costs) Without(others Costs) Costs {
	return Costs{
		without(c.Keys, others.Keys), without(c.Nodes, others.Nodes), without(c.GresTypes, others.GresTypes),
		without(c.Partitions, others.Partitions),
	}
}

// IsZero reports whether there are none.
func (c Costs) IsZero() bool { return len(c.Keys)+len(c.Nodes)+len(c.GresTypes)+len(c.Partitions) == 0 }

func without[T comparable](all, others []T) []T {
	var left []T
	for _, each := range all {
		if !slices.Contains(others, each) {
			left = append(left, each)
		}
	}
	return left
}
