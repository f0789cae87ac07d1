package slurmconf

import (
	"strconv"
	"strings"
)

// A costlyKey is a key of slurm.conf whose change costs running jobs.
type costlyKey struct {
	key string
	// unset is the value that Slurm uses if the key is not set.
	unset string
}

// costlyKeys are the keys whose change costs running jobs, in addition to PrologFlags. TestRealCostlyKeysCostJobs shows
// what they do to a job, except for SelectType: slurmctld refuses other values beside MaxNodeCount.
var costlyKeys = []costlyKey{
	{"SelectType", "select/cons_tres"},
	{"SlurmdSpoolDir", "/var/spool/slurmd"},
}

// KeepForJobs returns a document with those settings of an earlier one whose change would cost running jobs, and their
// keys. Keys that are excepted change nevertheless.
func KeepForJobs(document, earlier Document, excepted []string) (kept Document, waiting []string) {
	keep := func(key string) {
		if contains(excepted, key) {
			return
		}
		waiting = append(waiting, key)
		if value, found := earlier.Get(key); found {
			document.Set(key, value)
			return
		}
		document = document.filter(func(entry Entry) bool { return !entry.Is(key) })
	}
	for _, costly := range costlyKeys {
		if !strings.EqualFold(costly.in(document), costly.in(earlier)) {
			keep(costly.key)
		}
	}
	if HasPrologAtAllocation(document) != HasPrologAtAllocation(earlier) {
		keep(prologFlags)
	}
	return document, waiting
}

// maxJobCount is the number of jobs that slurmctld keeps.
var maxJobCount = costlyKey{"MaxJobCount", "10000"}

// KeepMaxJobCount returns a document with the MaxJobCount of an earlier one, if it is higher. slurmctld drops jobs that
// do not fit into the lower one, also those that run; each task of an array counts, and jobs that have ended count for
// a while.
func KeepMaxJobCount(document, earlier Document) (kept Document, keeps bool) {
	is, _ := strconv.Atoi(maxJobCount.in(earlier))
	will, err := strconv.Atoi(maxJobCount.in(document))
	if err != nil || will >= is {
		return document, false
	}
	document.Set(maxJobCount.key, maxJobCount.in(earlier))
	return document, true
}

// in returns the value of the key in a document.
func (k costlyKey) in(document Document) string {
	if value, found := document.Get(k.key); found {
		return value
	}
	return k.unset
}

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

// Close returns a document with which slurmctld starts no job. Jobs that run go on, and new ones are queued.
func Close(document Document) Document {
	return document.withPartitionStates(func(is string) string {
		if contains([]string{"DRAIN", "INACTIVE"}, is) {
			return "INACTIVE" // the partition takes no new jobs, and goes on to take none
		}
		return "DOWN"
	})
}

// Reopen returns a closed document in which all partitions start jobs.
func Reopen(document Document) Document {
	return document.withPartitionStates(func(string) string { return "" })
}

const partitionState = "State"

// withPartitionStates returns a document in which partitions have other states; an empty one is Slurm's default.
func (d Document) withPartitionStates(next func(is string) string) Document {
	var changed Document
	inherited := ""
	for _, entry := range d.entries {
		if entry.Is(partitionName) {
			is, others := inherited, make([]Pair, 0, len(entry.Pairs)+1)
			for _, pair := range entry.Pairs {
				if strings.EqualFold(pair.Key, partitionState) {
					is = pair.Value
				} else {
					others = append(others, pair)
				}
			}
			if strings.EqualFold(entry.Value(), "DEFAULT") {
				inherited = is
			} else if state := next(is); state != "" {
				entry = Entry{Pairs: append(others, Pair{partitionState, state}), Line: entry.Line}
			} else {
				entry = Entry{Pairs: others, Line: entry.Line}
			}
		}
		changed.entries = append(changed.entries, entry)
	}
	return changed
}
