package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// A Difference is what differs between the configurations of a cluster.
type Difference struct {
	Controller string `json:"controller"`
	// InForce is the hash of the configuration in force.
	InForce string `json:"inForce"`
	// Running is the hash that slurmctld reports; empty if it was not asked.
	Running string `json:"running,omitempty"`
	// Changed are keys for which slurmctld reports another value than the configuration in force has.
	Changed []Change `json:"changed,omitempty"`
	// Next is what the configuration that is being validated, or was refused, changes. It is nil if there is none.
	Next *Next `json:"next,omitempty"`
	// Waits are the changes that are not made yet, because they would cost jobs; nil if there are none.
	Waits *Waits `json:"waits,omitempty"`
	// Condition is the message of the condition ConfigurationApplied.
	Condition string   `json:"condition,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

// Next is a configuration that is not in force yet.
type Next struct {
	Hash string `json:"hash"`
	// Lines are the lines of all files that differ, after their file: removed ones with a minus, added ones with a plus.
	Lines []string `json:"lines"`
}

// A Change is a key with two values.
type Change struct {
	Key     string `json:"key"`
	InForce string `json:"inForce"`
	Running string `json:"running"`
}

// Compare compares the configuration in force with the next one, which is nil if there is none, and with what "scontrol
// show config" prints, which is empty if slurmctld was not asked.
func Compare(in *Input, next map[string]string, printed string) Difference {
	inForce := in.document()
	parameters, _ := inForce.Get("SlurmctldParameters")
	difference := Difference{Controller: in.Controller.Name, InForce: slurmconf.HashOf(parameters), Waits: Waiting(in)}
	if next != nil {
		document, _ := slurmconf.Parse(next[slurmconf.FileName])
		value, _ := document.Get("SlurmctldParameters")
		difference.Next = &Next{Hash: slurmconf.HashOf(value), Lines: lines(in.InForce, next)}
	}
	if printed == "" {
		return difference
	}
	running := settings(printed)
	difference.Running = slurmconf.HashOf(running["slurmctldparameters"])
	if difference.Running != difference.InForce {
		difference.Changed = changes(inForce, running)
	}
	return difference
}

// lines returns the lines of files that differ.
func lines(before, after map[string]string) []string {
	var found []string
	names := slices.Sorted(maps.Keys(before))
	for name := range after {
		if _, known := before[name]; !known {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if changed := Lines(before[name], after[name]); len(changed) > 0 {
			found = append(append(found, name), changed...)
		}
	}
	return found
}

// Lines returns the lines that two texts do not have in common, in their order: those of the first with a minus, those
// of the second with a plus. The operator's hash is left out.
func Lines(before, after string) []string {
	var found []string
	for _, side := range []struct{ sign, own, other string }{{"- ", before, after}, {"+ ", after, before}} {
		counts := map[string]int{}
		for line := range strings.Lines(withoutHash(side.other)) {
			counts[strings.TrimSpace(line)]++
		}
		for line := range strings.Lines(withoutHash(side.own)) {
			line = strings.TrimSpace(line)
			if counts[line]--; counts[line] < 0 {
				found = append(found, side.sign+line)
			}
		}
	}
	return found
}

// withoutHash removes the hash from a slurm.conf. Other texts stay.
func withoutHash(text string) string {
	document, err := slurmconf.Parse(text)
	if _, found := document.Get("SlurmctldParameters"); err != nil || !found {
		return text
	}
	return slurmconf.WithHash(document, "").Render()
}

// settings parses what "scontrol show config" prints: lines such as "SlurmdTimeout = 300 sec", by key in lower case.
func settings(printed string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(printed) {
		if key, value, is := strings.Cut(line, "="); is {
			found[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return found
}

// changes returns the parameters for which slurmctld shows another value. What it does not show is left out.
func changes(inForce slurmconf.Document, running map[string]string) []Change {
	var found []Change
	for entry := range inForce.All() {
		shown, known := running[strings.ToLower(entry.Key())]
		if len(entry.Pairs) > 1 || !known || normal(shown) == normal(entry.Value()) || entry.Is("SlurmctldParameters") {
			continue
		}
		found = append(found, Change{entry.Key(), entry.Value(), shown})
	}
	return found
}

// normal removes what slurmctld adds to a value that it shows: units, IDs of users, and the order of lists.
func normal(value string) string {
	value = strings.ToLower(strings.Trim(value, `"`))
	value, _, _ = strings.Cut(value, " ")
	value, _, _ = strings.Cut(value, "(")
	tokens := strings.Split(value, ",")
	slices.Sort(tokens)
	return strings.Join(tokens, ",")
}
