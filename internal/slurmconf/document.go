// Package slurmconf treats slurm.conf, slurmdbd.conf and cgroup.conf as documents: it parses, merges and renders them.
//
// A Document is a list of entries, one for each logical line: a parameter such as SlurmdTimeout=300, or a record such as
// PartitionName=debug Nodes=ALL. Parse reads a text as Slurm itself does, to the last quote and backslash, and refuses
// what slurmctld would refuse or silently misread, with the line and the remedy. Render writes the same document to the
// same bytes every time.
//
// Build makes slurm.conf from the values of a cluster and what the administrator adds. Each key belongs to one of three
// classes. Owned keys are the operator's, because pods, Services and volumes depend on them; anybody else's value is
// refused with the reason. Defaults are the operator's until somebody sets them. Lists, such as SlurmctldParameters, are
// merged token by token, and only the operator's own tokens are beyond reach. BuildDatabase does the same for
// slurmdbd.conf.
//
// From a built document come its variants: WithHash marks it, so that a running slurmctld tells which configuration it
// uses; Trial is what a throwaway slurmctld can start with and touch nothing real; Clients is what slurmrestd needs.
package slurmconf

import (
	"iter"
	"slices"
	"strings"
)

// A Pair is a key and its value, without quotes and escapes. Slurm does not distinguish case in keys; it is kept.
type Pair struct {
	Key, Value string
}

// An Entry is one logical line. The first pair names it; only records have more.
type Entry struct {
	Pairs []Pair
	// Line is the number of its first line in the text that it was parsed from, and 0 when it comes from elsewhere. It
	// serves messages only.
	Line int
}

// Key is the key that names the entry.
func (e Entry) Key() string { return e.Pairs[0].Key }

// Value is the value of the key that names the entry: for a record its name.
func (e Entry) Value() string { return e.Pairs[0].Value }

// Is tells whether the entry is named by the key.
func (e Entry) Is(key string) bool { return strings.EqualFold(e.Key(), key) }

// A Document is the content of a configuration file. The zero value is an empty one.
type Document struct {
	entries []Entry
}

// All yields the entries in order. They must not be changed.
func (d Document) All() iter.Seq[Entry] { return slices.Values(d.entries) }

// Get returns the value that Slurm would use for a key: the last one. It returns false when the key is not set.
func (d Document) Get(key string) (string, bool) {
	for _, entry := range slices.Backward(d.entries) {
		if entry.Is(key) {
			return entry.Value(), true
		}
	}
	return "", false
}

// Set sets a parameter: in its place and in the spelling that it has when it is set already, otherwise at the end.
func (d *Document) Set(key, value string) {
	if index := d.index(key); index >= 0 {
		key = d.entries[index].Key()
	}
	d.put(Entry{Pairs: []Pair{{key, value}}})
}

// index is where the first entry of a key is, or -1.
func (d *Document) index(key string) int {
	return slices.IndexFunc(d.entries, func(entry Entry) bool { return entry.Is(key) })
}

// put replaces the entry of the same key, and adds it when there is none.
func (d *Document) put(entry Entry) {
	index := d.index(entry.Key())
	if index < 0 {
		d.add(entry)
		return
	}
	d.entries = slices.Clone(d.entries) // a copy of the document may share them
	d.entries[index] = entry
}

// Append adds an entry at the end, whether or not there is one with this key: a record, or a key that may be repeated.
func (d *Document) Append(pairs ...Pair) {
	d.add(Entry{Pairs: pairs})
}

func (d *Document) add(entries ...Entry) {
	d.entries = append(slices.Clip(d.entries), entries...)
}

// filter returns the document with only the entries that are to be kept.
func (d Document) filter(keep func(Entry) bool) Document {
	var kept Document
	for _, entry := range d.entries {
		if keep(entry) {
			kept.entries = append(kept.entries, entry)
		}
	}
	return kept
}

// Equal tells whether two documents say the same in the same order and spelling, wherever their entries came from.
func (d Document) Equal(other Document) bool {
	return slices.EqualFunc(d.entries, other.entries, func(a, b Entry) bool { return slices.Equal(a.Pairs, b.Pairs) })
}
