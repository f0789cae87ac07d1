package plan

import (
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// prune removes the records of the set's nodes that have no pod, as far as the policy wants it.
func (p *planner) prune() {
	if p.Set.Prune == PruneNever || !p.Answers || p.Slurm == nil || len(p.Pods) < p.Desired {
		return // a pod that is missing comes back to its record
	}
	taken := make(map[string]bool, len(p.Pods))
	for i := range p.Pods {
		if p.Pods[i].Terminating {
			return // pods are deleted by the hundred, and their records with one read of Slurm and one request
		}
		taken[p.Pods[i].Node] = true
	}
	for _, record := range p.Slurm.Nodes {
		if taken[record.Name] || !p.prunable(record) {
			continue
		}
		vacancy := p.Slurm.Vacancy(record.Name, p.Now.Add(-patience))
		switch {
		case vacancy == slurm.Uncertain || !p.Fresh:
			p.Proof = true
		case vacancy == slurm.Drained, vacancy == slurm.Open && !record.Responding():
			p.do(Action{Kind: Prune, Node: record.Name, Cause: NoPod, Why: "it has no pod any more"})
		}
	}
}

// prunable reports whether the policy covers a record: one of this NodeSet that nobody else has closed on purpose, and that no
// reservation holds, because Slurm would refuse.
func (p *planner) prunable(record *slurm.Node) bool {
	if !strings.Contains(record.Comment, p.Set.UID) || record.Reserved() {
		return false
	}
	if owner, err := slurm.ParseOwner(record.Comment); err != nil || owner.NodeSetUID != p.Set.UID {
		return false
	}
	if p.Set.Prune == PruneScaledIn {
		return drainedFor(ScaleIn, record) || drainedFor(Deletion, record)
	}
	return record.DrainedByUs() || !record.Draining() && !record.Flags.Has(slurm.FlagFail)
}
