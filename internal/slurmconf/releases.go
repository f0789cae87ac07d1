package slurmconf

import (
	"slices"
	"strings"
)

// newKeys are the keys of slurm.conf that are newer than the oldest supported release, with the first release that
// knows them. Keys of a record are prefixed with the record's key.
var newKeys = map[string]string{
	"CertgenParameters":           "26.05",
	"CertgenType":                 "26.05",
	"CliFilterParameters":         "26.05",
	"HealthCheckTimeout":          "26.05",
	"HttpParserType":              "26.05",
	"JobCompPassScript":           "26.05",
	"LicenseParameters":           "26.05",
	"MetricsAuthUsers":            "26.05",
	"MetricsParameters":           "26.05",
	"MetricsType":                 "25.11",
	"NamespaceType":               "26.05",
	"PowerAction":                 "26.05",
	"PrologTimeout":               "26.05",
	"SlurmctldHttpAuthParameters": "26.05",
	"SlurmdHttpAuthParameters":    "26.05",
	"UrlParserType":               "26.05",

	"NodeName GresConf":       "26.05",
	"NodeName SuspendTime":    "26.05",
	"NodeName Topology":       "26.05",
	"PartitionName Exclusive": "26.05",
	"PartitionName Topology":  "26.05",
}

// releaseOf returns the first release that knows a key. It returns false if all releases know it, or none does.
func releaseOf(key string) (string, bool) {
	for known, release := range newKeys {
		if strings.EqualFold(known, key) {
			return release, true
		}
	}
	return "", false
}

// HoldBack removes the keys that are too new, unless an earlier document already had them, and returns their names.
//
// slurmctld sends its configuration to all slurmds, and a slurmd that does not know a key exits, with all its jobs.
func HoldBack(document, earlier Document, tooNew func(release string) bool) (kept Document, held []string) {
	inForce := map[string]bool{}
	for entry := range earlier.All() {
		for i := range entry.Pairs {
			inForce[strings.ToLower(entry.nameOf(i))] = true
		}
	}
	for _, entry := range document.entries {
		var pairs []Pair
		for i, pair := range entry.Pairs {
			name := entry.nameOf(i)
			if release, found := releaseOf(name); found && !inForce[strings.ToLower(name)] && tooNew(release) {
				held = append(held, name)
				continue
			}
			pairs = append(pairs, pair)
		}
		if len(pairs) > 0 {
			kept.entries = append(kept.entries, Entry{Pairs: pairs, Line: entry.Line})
		}
	}
	slices.Sort(held)
	return kept, slices.Compact(held)
}

// nameOf returns the key of a pair, in a record prefixed with the record's key.
func (e Entry) nameOf(pair int) string {
	if pair == 0 {
		return e.Key()
	}
	return e.Key() + " " + e.Pairs[pair].Key
}
