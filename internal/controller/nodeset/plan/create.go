package plan

import (
	"maps"
	"slices"
	"strings"
)

// create makes the pods that are missing: of the lowest ordinals that are free, or on the machines that have none.
func (p *planner) create() {
	if p.Set.Deleting {
		return
	}
	if p.Set.DaemonSet {
		p.createOnMachines()
		return
	}
	taken := make(map[int]bool, len(p.Pods))
	for i := range p.Pods {
		taken[p.Pods[i].Ordinal] = true
	}
	ordinal := 0
	for range p.Set.Replicas - len(p.Pods) {
		for taken[ordinal] {
			ordinal++
		}
		p.do(Action{Kind: Create, Pod: &Pod{Ordinal: ordinal}, Cause: Missing, Why: "it is missing"})
		ordinal++
	}
}

func (p *planner) createOnMachines() {
	taken := make(map[string]bool, len(p.Pods))
	for i := range p.Pods {
		taken[p.Pods[i].Machine] = true
	}
	for _, name := range slices.SortedFunc(maps.Keys(p.Machines), strings.Compare) {
		if machine := p.Machines[name]; machine.Wanted && !taken[name] {
			p.do(Action{
				Kind: Create, Pod: &Pod{Ordinal: -1, Machine: name, Node: machine.Node}, Node: machine.Node, Cause: Missing, Why: "the Kubernetes node has none",
			})
		}
	}
}
