package plan

import (
	"maps"
	"slices"
	"strings"
)

// create creates the pods that are missing, unless none can be created.
func (p *planner) create() {
	if p.Set.Deleting {
		return
	}
	missing := p.missingOrdinals
	if p.Set.DaemonSet {
		missing = p.missingOnMachines
	}
	additions := missing()
	if len(additions) > 0 && p.Set.Withheld != "" {
		p.Withheld = p.Set.Withheld
		return
	}
	p.Actions = append(p.Actions, additions...)
}

// missingOrdinals are pods of the lowest ordinals that are free.
func (p *planner) missingOrdinals() []Action {
	taken := make(map[int]bool, len(p.Pods))
	for i := range p.Pods {
		taken[p.Pods[i].Ordinal] = true
	}
	var additions []Action
	ordinal := 0
	for range p.Set.Replicas - len(p.Pods) {
		for taken[ordinal] {
			ordinal++
		}
		additions = append(additions, Action{Kind: Create, Pod: &Pod{Ordinal: ordinal}, Cause: Missing, Why: "it is missing"})
		ordinal++
	}
	return additions
}

// missingOnMachines are pods for the Kubernetes nodes that want one and have none.
func (p *planner) missingOnMachines() []Action {
	taken := make(map[string]bool, len(p.Pods))
	for i := range p.Pods {
		taken[p.Pods[i].Machine] = true
	}
	var additions []Action
	for _, name := range slices.SortedFunc(maps.Keys(p.Machines), strings.Compare) {
		if machine := p.Machines[name]; machine.Wanted && !taken[name] {
			additions = append(additions, Action{
				Kind: Create, Pod: &Pod{Ordinal: -1, Machine: name, Node: machine.Node}, Node: machine.Node, Cause: Missing, Why: "the Kubernetes node has none",
			})
		}
	}
	return additions
}
