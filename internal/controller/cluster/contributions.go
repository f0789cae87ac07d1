package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/inpod/trial"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// One NodeSet with a mistake must not hold up the configuration of the others. It is left out: what it had in force stays in force, since
// jobs may depend on it, and what is new does not come. What the operator cannot read is left out before the validation run; what only
// slurmctld refuses, the validation run finds.

// leftOut is a NodeSet that the configuration does not have as it asks to be, and why.
type leftOut = trial.LeftOut

// contributed is what NodeSets add to the configuration.
type contributed struct {
	sets []slurmconf.NodeSet
	// gresTypes are generic resources in force that stay although no set asks for them.
	gresTypes []string
	// devices says that pods have devices for GRES, and contain that jobs take in sessions of sshd.
	devices, contain bool
	leftOut          []leftOut
}

// contributions are what the NodeSets ask for, with what is in force in place of what cannot be read.
func contributions(scope *scope) contributed {
	var all contributed
	inForce := scope.inForce()
	written, _ := slurmconf.Parse(scope.controller.Spec.ExtraConf) // its mistakes are reported when it is merged
	for i := range scope.nodeSets {
		set := &scope.nodeSets[i]
		all.contain = all.contain || set.Spec.SSH.Enabled
		contribution, node, unreadable := clusterconf.NodeSet(set)
		all.devices = all.devices || node.HasDevices()
		err := contribution.Check()
		if err == nil {
			err = slurmconf.CheckAgainst(contribution, written, inForce)
		}
		if err != nil {
			all.leftOut = append(all.leftOut, leftOut{NodeSet: set.Name, Detail: err.Error()})
			contribution = inForceOf(contribution, written, inForce)
		}
		if err != nil || unreadable != nil { // the latter, the NodeSet says itself
			all.gresTypes = slurmconf.GresTypesOf(inForce)
			all.devices = all.devices || scope.promoted != nil && scope.promoted.files[slurmconf.GresFile] == slurmconf.IncludePodGres
		}
		if contribution.Name != "" {
			all.sets = append(all.sets, contribution)
		}
	}
	return all
}

// inForceOf is a NodeSet as it is in force: with the partition that it has, if any. Its GRES in force stay in any case.
func inForceOf(set slurmconf.NodeSet, written, inForce slurmconf.Document) slurmconf.NodeSet {
	kept := slurmconf.NodeSet{Name: set.Name}
	if slurmconf.Defines(written, "NodeSet", set.Name) {
		return slurmconf.NodeSet{}
	}
	if slurmconf.Defines(written, "PartitionName", set.Name) {
		return kept
	}
	if config, found := slurmconf.PartitionInForce(inForce, set.Name); found && set.Partition != nil {
		kept.Partition = &config
	}
	return kept
}

// inForce is the slurm.conf in force; empty before the first.
func (s *scope) inForce() slurmconf.Document {
	if s.promoted == nil {
		return slurmconf.Document{}
	}
	return s.promoted.document()
}

// without is a candidate in which NodeSets that slurmctld refuses are as they are in force.
func (c candidate) without(report trial.Report) (candidate, *status.Verdict) {
	names := make([]string, 0, len(report.LeftOut))
	for _, each := range report.LeftOut {
		names = append(names, each.NodeSet)
	}
	refused := slices.Clone(report.LeftOut)
	if report.AllLeftOut {
		for _, name := range c.changes.Names() {
			if !slices.Contains(names, name) {
				refused = append(refused, leftOut{NodeSet: name, Detail: "not validated yet, because slurmctld refuses too many others; correct those first"})
			}
		}
		names = c.changes.Names()
	}
	reduced, problem := seal(c.changes.LeaveOut(c.document, names), maps.Clone(c.files))
	reduced.leaving, reduced.held = c.leaving, c.held
	reduced.whole, reduced.refused, reduced.leftOut = c.hash, refused, slices.Concat(c.leftOut, refused)
	return reduced, problem
}

// candidate is the configuration in force, given what is in place of it when slurmctld does not refuse that.
func (p *promoted) candidate(wanted candidate) candidate {
	return candidate{
		document: p.document(), files: p.files, hash: p.hash, leaving: p.leaving, held: wanted.held,
		whole: p.whole, refused: p.refused, leftOut: slices.Concat(wanted.leftOut, p.refused),
	}
}

// leftOutMessage says which NodeSets are left out, why, and what to do.
func leftOutMessage(sets []leftOut) string {
	texts := make([]string, len(sets))
	for i, set := range sets {
		texts[i] = "NodeSet " + set.NodeSet + ": " + set.Detail
	}
	return fmt.Sprintf("without what these NodeSets ask for: %s. Correct spec.partition.config, or the GRES in spec.gres and spec.extraConf, of the NodeSet; "+
		"what it had in force before stays in force", strings.Join(texts, "; "))
}
