package trial

import "slices"

// maxRuns bounds how often slurmctld is started for one candidate. It is enough to find four faulty NodeSets among sixty, and keeps the
// names of all that it finds within what a report can hold.
const maxRuns = 40

// search finds the fewest changes without which a candidate is accepted, given what a run without some of them reports.
//
// The candidate as a whole comes first, and with nothing wrong there is no other run. If it is refused also without any of the changes, they
// are not the reason, or not the only one, and it is refused as a whole. Otherwise changes are added in halves, and halves of these, and
// whatever is refused by itself is left out. So the last variant that was accepted has all changes that are not left out. With so many
// faulty ones that this takes too long, all changes are left out until the first of them are corrected.
func search(changes []string, run func(leftOut []string) Report) Report {
	whole := run(nil)
	if whole.Outcome != Refused || len(changes) == 0 {
		return whole
	}
	base := run(changes)
	switch {
	case base.Outcome == Refused:
		return whole
	case base.Outcome != Accepted:
		return base
	case len(changes) == 1:
		return Report{Outcome: Accepted, LeftOut: []LeftOut{{changes[0], whole.Detail}}}
	}
	out := slices.Clone(changes)
	var faulty []LeftOut
	half := len(changes) / 2
	groups := [][]string{changes[:half], changes[half:]}
	for runs := 2; len(groups) > 0; runs++ {
		if runs == maxRuns {
			return Report{Outcome: Accepted, LeftOut: faulty, AllLeftOut: true} // as in base
		}
		group := groups[0]
		groups = groups[1:]
		without := slices.DeleteFunc(slices.Clone(out), func(name string) bool { return slices.Contains(group, name) })
		report := run(without)
		switch {
		case report.Outcome == Accepted:
			out = without
		case report.Outcome != Refused:
			return report
		case len(group) == 1:
			faulty = append(faulty, LeftOut{group[0], report.Detail})
		default:
			groups = append([][]string{group[:len(group)/2], group[len(group)/2:]}, groups...)
		}
	}
	return Report{Outcome: Accepted, LeftOut: faulty}
}
