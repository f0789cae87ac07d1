package cpus

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"strings"
)

// An object is a part of a machine in the format of hwloc 2.
type object struct {
	XMLName         xml.Name `xml:"object"`
	Type            string   `xml:"type,attr"`
	OSIndex         int      `xml:"os_index,attr"`
	CPUSet          string   `xml:"cpuset,attr"`
	CompleteCPUSet  string   `xml:"complete_cpuset,attr"`
	AllowedCPUSet   string   `xml:"allowed_cpuset,attr,omitempty"`
	NodeSet         string   `xml:"nodeset,attr"`
	CompleteNodeSet string   `xml:"complete_nodeset,attr"`
	AllowedNodeSet  string   `xml:"allowed_nodeset,attr,omitempty"`
	Index           int      `xml:"gp_index,attr"`
	Objects         []object `xml:"object"`
}

// describe returns the description of a machine with CPUs in the given order, each of which is a core of one socket.
// hwloc orders CPUs by their position in sets of CPUs. That position is the number in our order; the number that the
// kernel has for a CPU is its os_index, which is all that Slurm uses to assign CPUs to jobs.
func describe(order []int) []byte {
	index := 0
	newObject := func(kind string, number int, set string, parts ...object) object {
		index++
		return object{
			Type: kind, OSIndex: number, CPUSet: set, CompleteCPUSet: set, NodeSet: "0x1", CompleteNodeSet: "0x1",
			Index: index, Objects: parts,
		}
	}
	var cores []object
	for position, cpu := range order {
		set := setOf(position, position)
		cores = append(cores, newObject("Core", position, set, newObject("PU", cpu, set)))
	}
	all := setOf(0, len(order)-1)
	machine := newObject("Machine", 0, all, newObject("NUMANode", 0, all), newObject("Package", 0, all, cores...))
	machine.AllowedCPUSet, machine.AllowedNodeSet = all, "0x1"
	var text bytes.Buffer
	text.WriteString(xml.Header + "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n")
	encoder := xml.NewEncoder(&text)
	encoder.Indent("", " ")
	_ = encoder.Encode(machine) // to memory, and all fields are strings or numbers
	text.WriteString("\n</topology>\n")
	return text.Bytes()
}

// setOf returns the set of the positions from first to last: words of 32 bits, the highest first.
func setOf(first, last int) string {
	words := make([]uint32, last/32+1)
	for position := first; position <= last; position++ {
		words[position/32] |= 1 << (position % 32)
	}
	texts := make([]string, len(words))
	for i, word := range words {
		texts[len(words)-1-i] = "0x" + strings.Repeat("0", 8-len(strconv.FormatUint(uint64(word), 16))) +
			strconv.FormatUint(uint64(word), 16)
	}
	return strings.Join(texts, ",")
}
