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
	switch {
	case p.Set.Elastic != nil:
		missing = p.missingSlots
	case p.Set.DaemonSet:
		missing = p.missingOnKubernetesNodes
	}
	additions := missing()
	if len(additions) > 0 && p.Set.Withheld != "" {
		p.Withheld = p.Set.Withheld
		return
	}
	p.Actions = append(p.Actions, additions...)
}

// missingOrdinals returns pods for the lowest free ordinals.
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
		additions = append(additions, Action{
			Kind: Create, Pod: &Pod{Ordinal: ordinal}, Cause: Missing, Why: "it is missing",
		})
		ordinal++
	}
	return additions
}

// missingOnKubernetesNodes returns pods for the wanted Kubernetes nodes without one.
func (p *planner) missingOnKubernetesNodes() []Action {
	taken := make(map[string]bool, len(p.Pods))
	for i := range p.Pods {
		taken[p.Pods[i].KubernetesNode] = true
	}
	var additions []Action
	for _, name := range slices.SortedFunc(maps.Keys(p.KubernetesNodes), strings.Compare) {
		if node := p.KubernetesNodes[name]; node.Wanted && !taken[name] {
			additions = append(additions, Action{
				Kind: Create, Pod: &Pod{Ordinal: -1, KubernetesNode: name, SlurmNode: node.SlurmNode},
				SlurmNode: node.SlurmNode, Cause: Missing, Why: "the Kubernetes node has none",
			})
		}
	}
	return additions
}
