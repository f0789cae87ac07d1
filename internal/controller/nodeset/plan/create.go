package plan

import (
	"fmt"
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
	case p.Set.isElastic():
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

// missingOrdinals returns pods for the lowest free ordinals. Those whose Slurm nodes have records from when the NodeSet
// was elastic wait until these are removed: with a record, slurmd would exit, now or with the next reconfigure.
func (p *planner) missingOrdinals() []Action {
	taken := make(map[int]bool, len(p.Pods))
	for i := range p.Pods {
		taken[p.Pods[i].Ordinal] = true
	}
	recorded := map[int]Slot{}
	if p.Set.Elastic != nil {
		for _, slot := range p.Set.Elastic.Slots {
			recorded[slot.Ordinal] = slot
		}
	}
	var additions []Action
	ordinal := 0
	for range p.Set.Replicas - len(p.Pods) {
		for taken[ordinal] {
			ordinal++
		}
		if slot, waits := recorded[ordinal]; waits {
			p.Elastic.Held = p.awaitRemoval(slot)
			ordinal++
			continue
		}
		additions = append(additions, Action{
			Kind: Create, Pod: &Pod{Ordinal: ordinal}, Cause: Missing, Why: "it is missing",
		})
		ordinal++
	}
	return additions
}

// awaitRemoval says what the pod of a Slurm node with a record waits for.
func (p *planner) awaitRemoval(slot Slot) string {
	if record := p.slotRecord(slot); record != nil && record.HeldByOthers() {
		return fmt.Sprintf("the pod of %s waits until you resume it: it would lose its state (%s)", slot.SlurmNode,
			record.Reason)
	}
	return fmt.Sprintf("the pod of %s waits until slurmctld has removed the record that it had as an elastic node",
		slot.SlurmNode)
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
