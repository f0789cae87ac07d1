package slurmconf

import (
	"slices"
	"strings"
)

// CanClose reports whether partitions take the states that a document has when slurmctld is reconfigured with it.
func CanClose(document Document) bool {
	flags, _ := document.Get("ReconfigFlags")
	for flag := range strings.SplitSeq(flags, ",") {
		if contains([]string{"KeepPartInfo", "KeepPartState"}, flag) {
			return false
		}
	}
	return true
}

// Close returns a document with which slurmctld starts no job, and the states that the lines of its partitions set, by
// the name of the partition. Jobs that run go on, and new ones are queued.
func Close(document Document) (closed Document, states map[string]string) {
	states = map[string]string{}
	inherited := ""
	for _, entry := range document.entries {
		if entry.Is(partitionName) {
			state, explicit := entry.parameter(partitionState)
			switch {
			case strings.EqualFold(entry.Value(), "DEFAULT"):
				if explicit {
					inherited = state
				}
				closed.entries = append(closed.entries, entry)
				continue
			case explicit:
				states[entry.Value()] = state
			default:
				state = inherited
			}
			entry = entry.with(Pair{partitionState, closedState(state)})
		}
		closed.entries = append(closed.entries, entry)
	}
	return closed, states
}

// closedState returns the state in which a partition that has another one starts no jobs.
func closedState(is string) string {
	if contains([]string{"DRAIN", "INACTIVE"}, is) {
		return "INACTIVE" // the partition takes no new jobs, and goes on to take none
	}
	return "DOWN"
}

// Reopen returns the document that was closed, with the states that Close returned.
func Reopen(document Document, states map[string]string) Document {
	var open Document
	for _, entry := range document.entries {
		if entry.Is(partitionName) && !strings.EqualFold(entry.Value(), "DEFAULT") {
			if state, explicit := states[entry.Value()]; explicit {
				entry = entry.with(Pair{partitionState, state})
			} else {
				entry = entry.without(partitionState)
			}
		}
		open.entries = append(open.entries, entry)
	}
	return open
}

const partitionState = "State"

// parameter returns the value of a parameter of a record, and whether it has that parameter.
func (e Entry) parameter(key string) (value string, found bool) {
	if index := e.index(key); index >= 0 {
		return e.Pairs[index].Value, true
	}
	return "", false
}

// with returns a record with another value of a parameter, in its place, or at the end if it did not have it.
func (e Entry) with(pair Pair) Entry {
	e.Pairs = slices.Clone(e.Pairs)
	if index := e.index(pair.Key); index >= 0 {
		e.Pairs[index].Value = pair.Value
	} else {
		e.Pairs = append(e.Pairs, pair)
	}
	return e
}

// without returns a record without a parameter.
func (e Entry) without(key string) Entry {
	e.Pairs = withoutPairs(e.Pairs, []string{key})
	return e
}

// index returns the index of a parameter of a record, or -1.
func (e Entry) index(key string) int {
	return slices.IndexFunc(e.Pairs, func(pair Pair) bool { return strings.EqualFold(pair.Key, key) })
}
