// Package slurmconf parses, merges and renders slurm.conf, slurmdbd.conf and cgroup.conf.
//
// A Document is a list of entries, one per logical line: a parameter such as SlurmdTimeout=300, or a record such as
// PartitionName=debug Nodes=ALL. Parse reads a text exactly as Slurm does, including quotes and backslashes, and
// rejects what slurmctld would reject or silently misread, with the line and the remedy. Render is deterministic.
//
// Build generates slurm.conf from the values of a cluster and the administrator's additions. Each key belongs to one of
// three classes. Owned keys are the operator's, because pods, Services and volumes depend on them; another value is
// rejected with the reason. Defaults are the operator's unless the administrator sets them. Lists, such as
// SlurmctldParameters, are merged token by token, and only the operator's own tokens cannot be changed. BuildDatabase
// does the same for slurmdbd.conf.
//
// Variants are derived from a built document: WithHash marks it, so that a running slurmctld reports which
// configuration it uses; ForValidation is for a throwaway slurmctld that must not affect anything real; Clients is what
// slurmrestd needs.
package slurmconf

import (
	"iter"
	"slices"
	"strings"
)

// A Pair is a key and its value, without quotes and escapes. Keys keep their case, which Slurm ignores.
type Pair struct {
	Key, Value string
}

// An Entry is one logical line. The first pair names it; only records have more.
type Entry struct {
	Pairs []Pair
	// Line is the number of its first line in the parsed text, or 0 if it has another source. It is only used in
	// messages.
	Line int
}

// Key returns the key that names the entry.
func (e Entry) Key() string { return e.Pairs[0].Key }

// Value returns the value of the key that names the entry: for a record, its name.
func (e Entry) Value() string { return e.Pairs[0].Value }

// Is reports whether the key names the entry.
func (e Entry) Is(key string) bool { return strings.EqualFold(e.Key(), key) }

// A Document is the content of a configuration file. The zero value is empty.
type Document struct {
	entries []Entry
}

// All yields the entries in order. They must not be changed.
func (d Document) All() iter.Seq[Entry] { return slices.Values(d.entries) }

// Get returns the value that Slurm uses for a key, which is the last one, and whether the key is set.
func (d Document) Get(key string) (string, bool) {
	for _, entry := range slices.Backward(d.entries) {
		if entry.Is(key) {
			return entry.Value(), true
		}
	}
	return "", false
}

// Set sets a parameter: in place, with its existing spelling, if it is set already, otherwise at the end.
func (d *Document) Set(key, value string) {
	if index := d.index(key); index >= 0 {
		key = d.entries[index].Key()
	}
	d.put(Entry{Pairs: []Pair{{key, value}}})
}

// index returns the index of the first entry with a key, or -1.
func (d *Document) index(key string) int {
	return slices.IndexFunc(d.entries, func(entry Entry) bool { return entry.Is(key) })
}

// Without returns the document without a parameter.
func (d Document) Without(key string) Document {
	return d.filter(func(entry Entry) bool { return !entry.Is(key) })
}

// put replaces the entry with the same key, or adds it.
func (d *Document) put(entry Entry) {
	index := d.index(entry.Key())
	if index < 0 {
		d.add(entry)
		return
	}
	d.entries = slices.Clone(d.entries) // a copy of the document may share them
	d.entries[index] = entry
}

// Append adds an entry at the end, even if there is one with this key: a record, or a repeatable key.
func (d *Document) Append(pairs ...Pair) {
	d.add(Entry{Pairs: pairs})
}

// AddParameter adds a repeatable parameter after those with the same key, and before all records.
func (d *Document) AddParameter(key, value string) {
	d.Append(Pair{key, value})
	*d = inSections(*d)
}

func (d *Document) add(entries ...Entry) {
	d.entries = append(slices.Clip(d.entries), entries...)
}

// filter returns the document with only the entries for which keep is true.
func (d Document) filter(keep func(Entry) bool) Document {
	var kept Document
	for _, entry := range d.entries {
		if keep(entry) {
			kept.entries = append(kept.entries, entry)
		}
	}
	return kept
}

// Equal reports whether two documents have the same content, order and spelling; line numbers are ignored.
func (d Document) Equal(other Document) bool {
	return slices.EqualFunc(d.entries, other.entries, func(a, b Entry) bool { return slices.Equal(a.Pairs, b.Pairs) })
}
