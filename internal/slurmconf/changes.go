package slurmconf

import (
	"cmp"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
)

// ChangesFile is the name of the file with the Changes as JSON, next to the files of a candidate. Slurm does not read
// it.
const ChangesFile = "nodeset-changes.json"

// Changes are the requests of NodeSets that are not in force yet. If slurmctld refuses a document, each of them may be
// the reason, and the document may be put in force without it: see LeaveOut.
type Changes struct {
	NodeSets []Change `json:"nodeSets"`
	// GresTypes are the generic resources in force. They stay while a NodeSet is left out: its running nodes may have
	// them.
	GresTypes []string `json:"gresTypes,omitempty"`
}

// A Change is the request of one NodeSet.
type Change struct {
	NodeSet string `json:"nodeSet"`
	// SlurmName is the name of its partition, if it is another one.
	SlurmName string `json:"slurmName,omitempty"`
	// Partition is the line in force of the NodeSet's partition, empty if there is none; nil if the partition does not
	// change.
	Partition *string `json:"partition,omitempty"`
	// GresTypes are the generic resources that only NodeSets with changes have.
	GresTypes []string `json:"gresTypes,omitempty"`
	// Records are the changes of its nodes' records; nil if they do not change.
	Records *RecordChange `json:"records,omitempty"`
}

// A RecordChange is a change of records.
type RecordChange struct {
	// Wanted are the hostlist expressions of the wanted records.
	Wanted []string `json:"wanted"`
	// InForce are the lines of the records in force.
	InForce string `json:"inForce,omitempty"`
}

const gresTypes = "GresTypes"

// ChangesOf compares what NodeSets request in a document with a document in force.
func ChangesOf(document, inForce Document, sets []NodeSet, records []Record) Changes {
	changes := Changes{GresTypes: typesOf(inForce)}
	wanted, present := partitionsOf(document), partitionsOf(inForce)
	for _, set := range sets {
		change, name := Change{NodeSet: set.Name}, set.slurmName()
		if name != set.Name {
			change.SlurmName = name
		}
		for _, gres := range set.GresTypes {
			if !slices.Contains(changes.GresTypes, gres) {
				change.GresTypes = append(change.GresTypes, gres)
			}
		}
		if set.Partition != nil && wanted[name] != present[name] {
			change.Partition = new(present[name])
		}
		change.Records = recordChange(document, inForce, records, set.Name)
		if change.Partition != nil || len(change.GresTypes) > 0 || change.Records != nil {
			changes.NodeSets = append(changes.NodeSets, change)
		}
	}
	return changes
}

// Names returns the NodeSets with changes.
func (c Changes) Names() []string {
	names := make([]string, len(c.NodeSets))
	for i, change := range c.NodeSets {
		names[i] = change.NodeSet
	}
	return names
}

// LeaveOut returns a document in which some NodeSets are as they are in force.
func (c Changes) LeaveOut(document Document, names []string) Document {
	if len(names) == 0 {
		return document
	}
	lines, records := map[string]string{}, map[string]bool{}
	var without, with []string
	var restored Document
	for _, change := range c.NodeSets {
		if !slices.Contains(names, change.NodeSet) {
			with = append(with, change.GresTypes...)
			continue
		}
		without = append(without, change.GresTypes...)
		if change.Partition != nil {
			lines[cmp.Or(change.SlurmName, change.NodeSet)] = *change.Partition
		}
		if change.Records != nil {
			for _, expression := range change.Records.Wanted {
				records[expression] = true
			}
			inForce, _ := Parse(change.Records.InForce) // it was rendered
			restored.entries = append(restored.entries, inForce.entries...)
		}
	}
	var kept Document
	for _, entry := range document.entries {
		if entry.Is(nodeName) && records[entry.Value()] {
			continue
		}
		line, replaced := lines[entry.Value()]
		if !entry.Is(partitionName) || !replaced {
			kept.entries = append(kept.entries, entry)
			continue
		}
		inForce, _ := Parse(line) // it was rendered
		kept.entries = append(kept.entries, inForce.entries...)
	}
	kept.entries = append(kept.entries, restored.entries...)
	types := slices.DeleteFunc(typesOf(document), func(name string) bool { return slices.Contains(without, name) })
	for _, name := range slices.Concat(with, c.GresTypes) {
		if !slices.Contains(types, name) {
			types = append(types, name)
		}
	}
	return inSections(kept.withTypes(types))
}

// recordChange returns what changes about the records of a NodeSet; nil if nothing does.
func recordChange(document, inForce Document, records []Record, set string) *RecordChange {
	change := &RecordChange{}
	var wanted, present Document
	names := map[string]bool{}
	for _, record := range records {
		if record.NodeSet != set {
			continue
		}
		pairs, err := record.pairs()
		if err != nil || !document.has(Entry{Pairs: pairs}) {
			continue
		}
		wanted.Append(pairs...)
		change.Wanted = append(change.Wanted, pairs[0].Value)
		for _, node := range record.Nodes {
			names[node] = true
		}
	}
	for entry := range inForce.All() {
		if entry.Is(nodeName) && overlaps(entry.Value(), names) {
			present.entries = append(present.entries, Entry{Pairs: entry.Pairs})
		}
	}
	if change.InForce = present.Render(); change.InForce == wanted.Render() {
		return nil
	}
	return change
}

// overlaps reports whether an expression names one of some nodes.
func overlaps(expression string, nodes map[string]bool) bool {
	names, err := hostlist.Expand(expression, maxNodeLimit)
	return err == nil && slices.ContainsFunc(names, func(name string) bool { return nodes[name] })
}

// withTypes returns the document with other GRES types, or without that line if there are none.
func (d Document) withTypes(types []string) Document {
	if len(types) == 0 {
		return d.Without(gresTypes)
	}
	d.Set(gresTypes, strings.Join(types, ","))
	return inSections(d)
}

// ForValidation returns the changes for the variant of a document that the function ForValidation returns.
func (c Changes) ForValidation(document Document) Changes {
	if _, accounting := document.Get("AccountingStorageType"); !accounting {
		return c
	}
	sets := slices.Clone(c.NodeSets)
	for i, change := range sets {
		if change.Partition == nil || *change.Partition == "" {
			continue
		}
		inForce, _ := Parse(*change.Partition) // it was rendered
		for j, entry := range inForce.entries {
			inForce.entries[j].Pairs = withoutPairs(entry.Pairs, partitionAccountingDrops)
		}
		sets[i].Partition = new(inForce.Render())
	}
	return Changes{sets, c.GresTypes}
}

// PartitionInForce returns the parameters of a NodeSet's partition, by its name in slurm.conf, if a document has it.
func PartitionInForce(document Document, slurmName string) (config string, found bool) {
	for entry := range document.All() {
		pairs := entry.Pairs
		if entry.Is(partitionName) && entry.Value() == slurmName && len(pairs) > 1 &&
			strings.EqualFold(pairs[1].Key, "Nodes") && pairs[1].Value == slurmName {
			if pairs = pairs[2:]; len(pairs) == 0 {
				return "", true
			}
			return strings.TrimSuffix(Document{[]Entry{{Pairs: pairs}}}.Render(), "\n"), true
		}
	}
	return "", false
}

// GresTypesOf returns the GRES types of a document.
func GresTypesOf(document Document) []string { return typesOf(document) }

func typesOf(document Document) []string {
	value, _ := document.Get(gresTypes)
	return splitTokens(value)
}

// partitionsOf returns the lines of partitions, by name.
func partitionsOf(document Document) map[string]string {
	lines := map[string]string{}
	for entry := range document.All() {
		if entry.Is(partitionName) {
			lines[entry.Value()] = Document{[]Entry{entry}}.Render()
		}
	}
	return lines
}
