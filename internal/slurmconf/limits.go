package slurmconf

const (
	// leastNodes is where a derived limit begins, so that most clusters never change it.
	leastNodes = 1024
	// mostNodes is Slurm's own limit.
	mostNodes = 65536
)

// MaxNodeCount returns Slurm's limit on nodes: the explicit one if there is one, otherwise one that leaves a quarter
// more room than the desired nodes take and grows in powers of two, so that it changes seldom. A derived limit does not
// fall below the current one. No limit falls below the nodes that are live, because slurmctld would drop them.
func MaxNodeCount(desired, live, current int, explicit *int32) int {
	if explicit != nil {
		return max(int(*explicit), live)
	}
	limit := leastNodes
	for limit < mostNodes && 4*limit < 5*max(desired, live) {
		limit *= 2
	}
	return max(limit, current, live)
}
