package slurmconf

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
