package slurmconf

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/invalid"
)

// A NodeSet is a set of Slurm nodes that register with its names as features.
type NodeSet struct {
	// Name is the name of the custom resource, which users know it by.
	Name string
	// SlurmName is its name in slurm.conf: that of its line, of the feature that selects its nodes, and of its partition.
	// If it is empty, Name is.
	SlurmName string
	// Partition holds the parameters of its partition, on one line; nil for no partition.
	Partition *string
	// GresTypes are the GRES types of its nodes.
	GresTypes []string
	// MemoryPerCPU is the memory of a node in MiB for each of its CPUs; 0 if unknown.
	MemoryPerCPU int
}

func (s NodeSet) slurmName() string { return cmp.Or(s.SlurmName, s.Name) }

// Check returns what has to be changed in the NodeSet before it can be rendered into slurm.conf. It names the field.
func (s NodeSet) Check() error {
	if !isName(s.Name) {
		return fmt.Errorf("metadata.name %q must consist of %s; change it", s.Name, nameCharacters)
	}
	if s.SlurmName != "" && !isName(s.SlurmName) {
		return fmt.Errorf("spec.template.spec.hostname: %q must consist of %s; change it", s.SlurmName, nameCharacters)
	}
	for _, name := range s.GresTypes {
		if !isName(name) {
			return fmt.Errorf(
				"the GRES type %q in spec.gres or in Gres of spec.extraConf must consist of %s; change it", name, nameCharacters)
		}
	}
	if s.Partition != nil {
		if _, err := ParsePartition(*s.Partition); err != nil {
			return invalid.New("spec.partition.config", "%w", err)
		}
	}
	return nil
}

// appendTo adds the set and its partition, if it has one, with defaults for parameters that it does not have. It must
// have passed Check. The administrator's partitions can refer to the set by each of its names: there is a line for Name
// too, unless it is defined otherwise.
func (s NodeSet) appendTo(d *Document, defined map[string]bool, defaults []Pair) {
	name := s.slurmName()
	d.Append(Pair{nodeSet, name}, Pair{"Feature", name})
	if !defined[s.Name] {
		d.Append(Pair{nodeSet, s.Name}, Pair{"Feature", s.Name})
	}
	if s.Partition == nil {
		return
	}
	pairs, _ := ParsePartition(*s.Partition) // checked
	for _, value := range defaults {
		if !slices.ContainsFunc(pairs, func(pair Pair) bool { return replaces(pair.Key, value.Key) }) {
			pairs = append(pairs, value)
		}
	}
	d.Append(append([]Pair{{partitionName, name}, {"Nodes", name}}, pairs...)...)
}

// defaultMemory are the keys for the memory of jobs that do not ask for any; a partition has at most one of them.
var defaultMemory = []string{"DefMemPerCPU", "DefMemPerGPU", "DefMemPerNode"}

// replaces reports whether a parameter with a key makes the one with another key superfluous.
func replaces(key, other string) bool {
	return strings.EqualFold(key, other) || contains(defaultMemory, key) && contains(defaultMemory, other)
}

// ParsePartition parses the parameters of a NodeSet's partition, such as "Default=YES MaxTime=1-0".
func ParsePartition(config string) ([]Pair, error) {
	config = strings.Trim(config, spaces)
	if strings.ContainsAny(config, "\n\x00") {
		return nil, errors.New("it has more than one line; join the lines with blanks")
	}
	line, continued := cutContinuation(cutComment(config))
	if continued {
		return nil, errors.New("it ends with a backslash, which would join the next line; remove it")
	}
	pairs, fault := parsePairs(unescape(line))
	if fault != nil {
		return nil, fmt.Errorf("%s: %s; %s", shorten(config), fault.reason, fault.remedy)
	}
	for _, pair := range pairs {
		if strings.EqualFold(pair.Key, "PartitionName") || strings.EqualFold(pair.Key, "Nodes") {
			return nil, fmt.Errorf(
				"%s is the NodeSet's own name; remove it, or define a partition in the Controller's extraConf", pair.Key)
		}
	}
	return pairs, nil
}

// checkRecords rejects two partitions of one name, with which slurmctld would not start, and two NodeSets of one name,
// of which it would use one. The operator's entries have no line, so that the error is about the administrator's.
func checkRecords(d Document, sets []NodeSet) error {
	var faults []error
	seen := map[string]Entry{}
	for entry := range d.All() {
		if !entry.Is("PartitionName") && !entry.Is("NodeSet") || strings.EqualFold(entry.Value(), "DEFAULT") {
			continue
		}
		// Unlike keys, names are case-sensitive.
		id := strings.ToLower(entry.Key()) + "=" + entry.Value()
		first, twice := seen[id]
		if !twice {
			seen[id] = entry
			continue
		}
		fault := &Error{
			Line: entry.Line, Text: fmt.Sprintf("%q", entry.Key()+"="+entry.Value()), Reason: "it is defined twice",
			Remedy: "remove or rename one of the two",
		}
		if first.Line == 0 {
			fault.Reason = "the NodeSet " + ownerOf(first.Value(), sets) + " defines it already"
			fault.Remedy = "remove it here, or set spec.partition.enabled of the NodeSet to false"
			if entry.Is("NodeSet") {
				fault.Remedy = "rename it here; the operator adds the line of a NodeSet"
			}
		}
		faults = append(faults, fault)
	}
	return errors.Join(faults...)
}

// ownerOf returns the NodeSet with a name in slurm.conf, and that name if it is another than users know it by.
func ownerOf(slurmName string, sets []NodeSet) string {
	for _, set := range sets {
		if set.slurmName() == slurmName && set.Name != slurmName {
			return set.Name + ", which is named " + slurmName + " after spec.template.spec.hostname,"
		}
	}
	return slurmName
}

// CheckAgainst returns the conflict of a new NodeSet with a line of the administrator that is in force. If the line is
// the new one, Build rejects the line.
func CheckAgainst(set NodeSet, extra, inForce Document) error {
	for entry := range extra.All() {
		own := entry.Is(nodeSet) || entry.Is(partitionName) && set.Partition != nil
		if !own || entry.Value() != set.slurmName() {
			continue
		}
		field := "name"
		if set.slurmName() != set.Name {
			field = "spec.template.spec.hostname"
		}
		for earlier := range inForce.All() {
			if slices.Equal(entry.Pairs, earlier.Pairs) {
				return fmt.Errorf(
					"line %d of the Controller's spec.extraConf, which is in force, defines %s=%s already; "+
						"give the NodeSet another %s, set its spec.partition.enabled to false, or remove the line",
					entry.Line, entry.Key(), entry.Value(), field)
			}
		}
	}
	return nil
}

// Defines reports whether a document has a record with a key and a name.
func Defines(document Document, key, name string) bool { return namesOf(document, key)[name] }
