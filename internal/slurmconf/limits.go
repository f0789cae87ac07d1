package slurmconf

import (
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
)

const (
	// minNodeLimit is the initial derived limit, so that most clusters never change it.
	minNodeLimit = 1024
	// maxNodeLimit is Slurm's own limit.
	maxNodeLimit = 65536
)

// MaxNodeCount returns Slurm's node limit: the explicit one if set, otherwise a power of two with 25 % headroom over
// the desired nodes, so that it rarely changes. A derived limit does not fall below the current one. No limit falls
// below the number of live nodes, because slurmctld would drop them.
func MaxNodeCount(desired, live, current int, explicit *int32) int {
	if explicit != nil {
		return max(int(*explicit), live)
	}
	limit := minNodeLimit
	for limit < maxNodeLimit && 4*limit < 5*max(desired, live) {
		limit *= 2
	}
	return max(limit, current, live)
}

// CountNodes returns how many Slurm nodes a document has, up to Slurm's own limit.
func CountNodes(document Document) int {
	count := 0
	for nodes := range namesOf(document, nodeName) {
		if !strings.EqualFold(nodes, "DEFAULT") {
			count += countNames(nodes)
		}
	}
	return min(count, maxNodeLimit)
}

// countNames returns how many names a hostlist has, up to Slurm's own limit of nodes. It ignores what it cannot parse.
func countNames(expression string) int {
	count := 0
	for _, err := range hostlist.Names(expression) {
		if err != nil || count == maxNodeLimit {
			break
		}
		count++
	}
	return count
}
