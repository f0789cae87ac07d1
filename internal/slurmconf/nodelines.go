package slurmconf

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
)

// NodeLines is the name under which the lines of an administrator's nodes wait for jobs to end.
const NodeLines = nodeName

// harmlessParameters are the parameters of a node that may change below a job: see docs/reference/change-costs.md.
var harmlessParameters = []string{"Feature", "Features", "Weight"}

// ownAddress are the parameters of a line for several nodes that may have a value for each of them.
var ownAddress = []string{"NodeAddr", "NodeHostname", "BcastAddr", "Port"}

// WaitingNodes are the nodes whose lines cannot be as wanted yet.
type WaitingNodes struct {
	// Kept are nodes whose lines change or are removed. Added are nodes that get a line although they have registered
	// without one.
	Kept, Added []string
}

// IsZero reports whether there are none.
func (w WaitingNodes) IsZero() bool { return len(w.Kept)+len(w.Added) == 0 }

// KeepNodes returns a document with the lines of those nodes of an earlier one that change or are removed, and may not,
// and the names of these nodes. slurmctld ends the jobs of a node that it does not know any more, or not with these
// resources. A node that is new in the document, and may not be added, has no line yet: a slurmd that has registered
// without one exits when it finds one. Nodes are independent of each other: a line that is about more of them is split.
// Records of elastic nodes are not among them: see SettleRecords.
func KeepNodes(document, earlier Document, mayChange, mayAdd func(node string) bool) (
	kept Document, waiting WaitingNodes) {
	if slices.EqualFunc(nodeEntries(document), nodeEntries(earlier), sameEntry) {
		return document, WaitingNodes{} // as almost always
	}
	nodes := nodesOf(document)
	wanted := map[string]node{}
	for _, node := range nodes {
		wanted[node.name] = node
	}
	keep, lines, inForce := map[string]bool{}, nodeLines{}, map[string]bool{}
	for _, node := range nodesOf(earlier) {
		inForce[node.name] = true
		next, stays := wanted[node.name]
		if stays && sameButHarmless(node.effective, next.effective) || keep[node.name] || mayChange(node.name) {
			continue
		}
		keep[node.name] = true
		waiting.Kept = append(waiting.Kept, node.name)
		lines.add(node.name, node.effective)
	}
	for _, node := range nodes {
		if !inForce[node.name] && !keep[node.name] && !mayAdd(node.name) {
			keep[node.name] = true
			waiting.Added = append(waiting.Added, node.name)
		}
	}
	if waiting.IsZero() {
		return document, waiting
	}
	return document.replaceNodes(nodes, keep, lines.entries()), waiting
}

// AdministratorsNodes returns the names of the nodes in a document, except those of elastic NodeSets.
func AdministratorsNodes(document Document) map[string]bool {
	names := map[string]bool{}
	for _, node := range nodesOf(document) {
		names[node.name] = true
	}
	return names
}

// WithoutNodes returns a document without an administrator's lines about some nodes.
func WithoutNodes(document Document, without func(node string) bool) Document {
	nodes, removed := nodesOf(document), map[string]bool{}
	for _, node := range nodes {
		if without(node.name) {
			removed[node.name] = true
		}
	}
	if len(removed) == 0 {
		return document
	}
	return document.replaceNodes(nodes, removed, nil)
}

// replaceNodes returns a document without some of its nodes, and with other lines for them. These come before all
// others about nodes, so that no NodeName=DEFAULT applies to them.
func (d Document) replaceNodes(nodes []node, replaced map[string]bool, replacements []Entry) Document {
	split := map[int]nodeLines{} // the lines of which nodes are replaced, with the other nodes
	for _, node := range nodes {
		if replaced[node.name] {
			split[node.entry] = nodeLines{}
		}
	}
	for _, node := range nodes {
		if others, found := split[node.entry]; found && !replaced[node.name] {
			others.add(node.name, node.own)
		}
	}
	var changed Document
	for i, entry := range d.entries {
		if isRecord(entry.Key()) {
			changed.entries = append(changed.entries, replacements...)
			replacements = nil
		}
		if others, found := split[i]; found {
			changed.entries = append(changed.entries, others.entries()...)
		} else {
			changed.entries = append(changed.entries, entry)
		}
	}
	changed.entries = append(changed.entries, replacements...)
	return changed
}

// A node is what a document says about one node.
type node struct {
	name string
	// entry is the index of its line. own are the parameters in it, effective also those that it has by default.
	entry          int
	own, effective []Pair
}

// nodeEntries returns the lines about nodes, except those of elastic NodeSets.
func nodeEntries(document Document) []Entry {
	return document.filter(isAboutNodes).entries
}

func isAboutNodes(entry Entry) bool { return entry.Is(nodeName) && !isElasticRecord(entry) }

func sameEntry(a, b Entry) bool { return slices.Equal(a.Pairs, b.Pairs) }

// nodesOf returns the nodes of a document in its order, except those of elastic NodeSets, up to a line that is not
// valid or exceeds Slurm's limit of nodes.
func nodesOf(document Document) []node {
	var nodes []node
	var defaults []Pair
	for i, entry := range document.entries {
		switch {
		case !isAboutNodes(entry):
		case strings.EqualFold(entry.Value(), "DEFAULT"):
			defaults = overlay(defaults, entry.Pairs[1:])
		default:
			names, err := hostlist.Expand(entry.Value(), maxNodeLimit-len(nodes))
			if err != nil {
				return nodes // slurmctld refuses it
			}
			nodes = append(nodes, expand(names, i, entry.Pairs[1:], defaults)...)
		}
	}
	return nodes
}

// expand returns the nodes of a line, each with its share of the parameters.
func expand(names []string, entry int, parameters, defaults []Pair) []node {
	nodes := make([]node, len(names))
	for _, pair := range parameters {
		values := shares(pair, len(nodes))
		for i := range nodes {
			nodes[i].own = append(nodes[i].own, Pair{pair.Key, values[i]})
		}
	}
	for i, name := range names {
		nodes[i].name, nodes[i].entry, nodes[i].effective = name, entry, overlay(defaults, nodes[i].own)
	}
	return nodes
}

// shares returns the value of a parameter for each of the nodes of a line.
func shares(pair Pair, nodes int) []string {
	if contains(ownAddress, pair.Key) {
		if values, err := hostlist.Expand(pair.Value, nodes); err == nil && len(values) == nodes {
			return values
		}
	}
	return slices.Repeat([]string{pair.Value}, nodes)
}

// overlay returns parameters with others in place of those that have the same key.
func overlay(parameters, others []Pair) []Pair {
	kept := slices.DeleteFunc(slices.Clone(parameters), func(pair Pair) bool {
		return slices.ContainsFunc(others, func(other Pair) bool { return strings.EqualFold(pair.Key, other.Key) })
	})
	return append(kept, others...)
}

// sameButHarmless reports whether two lists of parameters differ only in what may change below a job.
func sameButHarmless(a, b []Pair) bool {
	relevant := func(pairs []Pair) []Pair {
		var list []Pair
		for _, pair := range pairs {
			if !contains(harmlessParameters, pair.Key) {
				list = append(list, Pair{strings.ToLower(pair.Key), pair.Value})
			}
		}
		slices.SortStableFunc(list, func(a, b Pair) int { return cmp.Compare(a.Key, b.Key) })
		return list
	}
	return slices.Equal(relevant(a), relevant(b))
}

// nodeLines collects nodes, and writes those with the same parameters into one line.
type nodeLines map[string][]node // by the parameters that they have in common

func (l nodeLines) add(name string, parameters []Pair) {
	common := []Pair{{nodeName, ""}}
	for _, pair := range parameters {
		if contains(ownAddress, pair.Key) {
			pair.Value = ""
		}
		common = append(common, pair)
	}
	id := Document{[]Entry{{Pairs: common}}}.Render()
	l[id] = append(l[id], node{name: name, own: parameters})
}

// entries returns the lines, sorted.
func (l nodeLines) entries() []Entry {
	var entries []Entry
	for _, id := range slices.Sorted(maps.Keys(l)) {
		nodes := l[id]
		line := Entry{Pairs: []Pair{{nodeName, inOrder(nodes, func(n node) string { return n.name })}}}
		for i, pair := range nodes[0].own {
			if contains(ownAddress, pair.Key) {
				pair.Value = inOrder(nodes, func(n node) string { return n.own[i].Value })
			}
			line.Pairs = append(line.Pairs, pair)
		}
		entries = append(entries, line)
	}
	return entries
}

// inOrder returns a hostlist expression for a text of each node, in their order; that text, if all have the same.
func inOrder(nodes []node, text func(node) string) string {
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = text(node)
	}
	if len(slices.Compact(slices.Clone(texts))) == 1 {
		return texts[0]
	}
	if expression, err := hostlist.Compress(texts); err == nil {
		if again, err := hostlist.Expand(expression, len(texts)); err == nil && slices.Equal(again, texts) {
			return expression
		}
	}
	return strings.Join(texts, ",")
}
