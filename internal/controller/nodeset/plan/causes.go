package plan

import (
	"slices"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// Causes count the Slurm nodes of an elastic NodeSet that are up by why they are. Each counts once.
type Causes struct {
	// PoweringUp are powering up, with or without a job. Busy have jobs. Closed have none and take none.
	PoweringUp, Busy, Closed int
	// Minimum, Warm and Scheduled are idle and stay up; each counts under the first that explains it. Idle are idle and
	// powered down in a while.
	Minimum, Warm, Scheduled, Idle int
	// PoweringDown are no longer up.
	PoweringDown int
}

// causes counts Slurm nodes by why they are up, and returns the jobs with the lowest IDs that keep them up. Those stay
// the same for as long as they run, however many others start and end.
func (p *planner) causes() (causes Causes, jobs []int64) {
	if p.Slurm == nil {
		return Causes{}, nil
	}
	free := 0
	for _, slot := range p.Set.Elastic.Slots {
		record := p.slotRecord(slot)
		switch {
		case record == nil:
			continue
		case !on(record):
			if record.Flags.Has(slurm.FlagPoweringDown) {
				causes.PoweringDown++
			}
			continue
		case record.PoweringUp():
			causes.PoweringUp++
		case p.slotBusy(record):
			causes.Busy++
		case record.Closed():
			causes.Closed++
		default:
			free++
		}
		if job := p.Slurm.Loads[record.Name].Job; job != 0 {
			jobs = append(jobs, job)
		}
	}
	up := func(wanted int) int { // of those that are free, and not counted yet
		return max(min(wanted, free)-causes.Minimum-causes.Warm-causes.Scheduled, 0)
	}
	causes.Minimum = up(p.Set.Elastic.Min - causes.Busy - causes.PoweringUp)
	causes.Warm = up(p.Set.Elastic.Warm)
	causes.Scheduled = up(p.Elastic.Warm)
	causes.Idle = up(free)
	slices.Sort(jobs)
	jobs = slices.Compact(jobs)
	return causes, slices.Clip(jobs[:min(len(jobs), slinkyv1beta1.MaxElasticJobs)])
}
