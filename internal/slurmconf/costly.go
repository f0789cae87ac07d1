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

// costlyKeys are the keys whose change costs running jobs, in addition to PrologFlags: see
// docs/reference/change-costs.md. Of SelectType, slurmctld refuses other values beside MaxNodeCount.
var costlyKeys = []costlyKey{
	{"HashPlugin", "hash/k12"},
	{"SelectType", "select/cons_tres"},
	{selectParameters, "CR_Core_Memory"},
	{"SlurmdSpoolDir", "/var/spool/slurmd"},
}

// selectParameters say which resources slurmctld gives to jobs; a partition can have its own.
const selectParameters = "SelectTypeParameters"

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
		document = document.Without(key)
	}
	for _, costly := range costlyKeys {
		if !strings.EqualFold(costly.in(document), costly.in(earlier)) {
			keep(costly.key)
		}
	}
	if kept, changes := keepSelectParameters(document, earlier); changes && !contains(excepted, selectParameters) {
		document = kept
		if !contains(waiting, selectParameters) {
			waiting = append(waiting, selectParameters)
		}
	}
	if HasPrologAtAllocation(document) != HasPrologAtAllocation(earlier) && !contains(excepted, prologFlags) {
		keep(prologFlags)
		for _, key := range needContain {
			if value(document, key) != value(earlier, key) {
				keep(key)
			}
		}
	}
	return document, waiting
}

// keepSelectParameters returns a document with the selectParameters that partitions have in an earlier one, and whether
// any partition has others.
func keepSelectParameters(document, earlier Document) (kept Document, changes bool) {
	inForce := map[string]Entry{}
	for entry := range earlier.All() {
		if entry.Is(partitionName) {
			inForce[entry.Value()] = entry
		}
	}
	for _, entry := range document.entries {
		if was, known := inForce[entry.Value()]; entry.Is(partitionName) && known {
			before, had := was.parameter(selectParameters)
			if after, has := entry.parameter(selectParameters); has != had || !strings.EqualFold(before, after) {
				changes = true
				entry = entry.without(selectParameters)
				if had {
					entry = entry.with(Pair{selectParameters, before})
				}
			}
		}
		kept.entries = append(kept.entries, entry)
	}
	return kept, changes
}

// needContain are keys that slurmctld accepts only beside PrologFlags=Contain, so that they change together.
var needContain = []string{"NamespaceType", "JobContainerType"}

// value returns the value of a key; empty if it is not set.
func value(document Document, key string) string {
	value, _ := document.Get(key)
	return value
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
