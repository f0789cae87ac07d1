package plan

import (
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// prune deletes the records of the NodeSet's Slurm nodes without a pod, as the policy asks for. In an elastic NodeSet,
// which has its records in slurm.conf, these are the ones from before it was elastic: all of them must go.
func (p *planner) prune() {
	if !p.Answers || p.Slurm == nil {
		return
	}
	elastic := p.Set.isElastic()
	if !elastic && (p.Set.Prune == PruneNever || len(p.Pods) < p.Desired) {
		return // a missing pod is re-created and reuses its record
	}
	taken := make(map[string]bool, len(p.Pods))
	for i := range p.Pods {
		if p.Pods[i].Terminating && !elastic {
			return // many pods are deleted at a time, and their records with one read of Slurm and one request
		}
		taken[p.Pods[i].SlurmNode] = true
	}
	for _, record := range p.Slurm.Nodes {
		if taken[record.Name] || !p.prunable(record) {
			continue
		}
		vacancy := p.Slurm.Vacancy(record.Name, p.Now.Add(-maxSnapshotAge))
		switch {
		case vacancy == slurm.Uncertain || !p.justRead(record.Name):
			p.refresh(record.Name)
		case vacancy == slurm.Drained, vacancy == slurm.Open && !record.Responding():
			p.do(Action{Kind: Prune, SlurmNode: record.Name, Cause: NoPod, Why: "it has no pod any more"})
		}
	}
}

// prunable reports whether the policy covers a record: it is of this NodeSet, no user has closed it, and no reservation
// includes it, because Slurm would refuse.
func (p *planner) prunable(record *slurm.Node) bool {
	if !strings.Contains(record.Comment, p.Set.UID) || record.Reserved() || record.Flags.Has(slurm.FlagCloud) {
		return false
	}
	if owner, err := slurm.ParseOwner(record.Comment); err != nil || owner.NodeSetUID != p.Set.UID {
		return false
	}
	if p.Set.Prune == PruneScaledIn && !p.Set.isElastic() {
		return drainedFor(ScaleIn, record) || drainedFor(Deletion, record)
	}
	return record.DrainedByUs() || !record.Draining() && !record.Flags.Has(slurm.FlagFail)
}
