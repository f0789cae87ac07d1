package validation

import "slices"

// maxRuns limits the runs of slurmctld for one candidate. It suffices to find four faulty NodeSets among sixty, and
// keeps the names of all that it finds within the size of a report.
const maxRuns = 40

// search finds the fewest changes to leave out so that a candidate is accepted. run validates it without some changes.
//
// The whole candidate comes first, and if it is accepted there is no other run. If it is also refused without any of
// the changes, they are not the reason, or not the only one, and it is refused as a whole. Otherwise changes are added
// back by bisection, and each one that is refused on its own is left out. So the last accepted variant has all changes
// that are not left out. If there are too many faulty ones to find within maxRuns, all changes are left out until some
// of them are corrected.
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
