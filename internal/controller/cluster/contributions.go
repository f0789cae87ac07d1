package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// One NodeSet with a mistake must not block the configuration of the others. Its changes are left out: its settings in
// force stay in force, because jobs may depend on them, and new ones are not applied. Settings that the operator cannot
// parse are left out before the validation run; settings that only slurmctld refuses are found by the validation run.

// leftOut is a NodeSet whose changes are left out of the configuration, with the reason.
type leftOut = validation.LeftOut

// contributed is what the NodeSets add to the configuration.
type contributed struct {
	sets []slurmconf.NodeSet
	// gresTypes are GRES types in force that are kept even if no NodeSet asks for them any more: slurmctld forgets what a
	// running job has of a type that it does not know, and gives that to other jobs.
	gresTypes []string
	// devices is true if pods have devices for GRES, sshd if users can log in to them.
	devices, sshd bool
	// names are the names of the sets in Slurm, by those of the custom resources.
	names   map[string]string
	leftOut []leftOut
}

// contributions returns what the NodeSets ask for. Settings that cannot be parsed are replaced by those in force.
func contributions(scope *scope) contributed {
	inForce := scope.inForce()
	written := slurmconf.Written(scope.controller.Spec.ExtraConf)
	names := clusterconf.SlurmNames(scope.nodeSets, inForce, written)
	all := contributed{names: map[string]string{}}
	keepsAll := scope.nodes == nil
	for i := range scope.nodeSets {
		set := &scope.nodeSets[i]
		all.sshd = all.sshd || set.Spec.SSH.Enabled
		contribution, node, unreadable := clusterconf.NodeSet(set)
		contribution.SlurmName = names[set.Name]
		all.devices = all.devices || node.HasDevices()
		err := cmp.Or(checkContribution(contribution, names, written, inForce), checkPowerSaving(set, written))
		if err != nil {
			all.leftOut = append(all.leftOut, leftOut{NodeSet: set.Name, Detail: err.Error()})
			contribution = inForceOf(contribution, written, inForce)
		}
		keepsAll = keepsAll || err != nil || unreadable != nil // unreadable is reported in the NodeSet's own status
		if contribution.Name != "" {
			all.sets = append(all.sets, contribution)
			all.names[contribution.Name] = contribution.SlurmName
		}
	}
	for _, gres := range slurmconf.GresTypesOf(inForce) {
		if keepsAll || scope.nodes.HasGRES(gres) {
			all.gresTypes = append(all.gresTypes, gres)
		}
	}
	all.devices = all.devices || len(all.gresTypes) > 0 &&
		scope.promoted.files[slurmconf.GresFile] == slurmconf.IncludePodGres
	return all
}

// checkContribution returns why the settings of a NodeSet cannot be applied; nil if they can.
func checkContribution(set slurmconf.NodeSet, names map[string]string, written, inForce slurmconf.Document) error {
	if set.SlurmName == "" {
		for other, name := range names {
			if name == set.Name {
				return fmt.Errorf(
					"NodeSet %s has the name %s in Slurm already, after its spec.template.spec.hostname; give this NodeSet "+
						"another name, or a spec.template.spec.hostname", other, name)
			}
		}
	}
	if err := set.Check(); err != nil {
		return err
	}
	return slurmconf.CheckAgainst(set, written, inForce)
}

// inForceOf returns a NodeSet as it is in force: with its current partition, if any. Its GRES in force are kept in any
// case.
func inForceOf(set slurmconf.NodeSet, written, inForce slurmconf.Document) slurmconf.NodeSet {
	kept := slurmconf.NodeSet{Name: set.Name, SlurmName: set.SlurmName}
	if set.SlurmName == "" || slurmconf.Defines(written, "NodeSet", set.SlurmName) {
		return slurmconf.NodeSet{}
	}
	if slurmconf.Defines(written, "PartitionName", set.SlurmName) {
		return kept
	}
	if config, found := slurmconf.PartitionInForce(inForce, set.SlurmName); found && set.Partition != nil {
		kept.Partition = &config
	}
	return kept
}

// inForce returns the slurm.conf in force, with open partitions; empty if there is none yet.
func (s *scope) inForce() slurmconf.Document { return s.promoted.inForce() }

// inForce returns its slurm.conf with open partitions.
func (p *promoted) inForce() slurmconf.Document {
	switch {
	case p == nil:
		return slurmconf.Document{}
	case p.isClosed():
		return slurmconf.Reopen(p.document(), p.openStates)
	}
	return p.document()
}

// without returns the candidate with the NodeSets that slurmctld refuses reset to their settings in force.
func (c candidate) without(report validation.Report) (candidate, *status.Verdict) {
	names := make([]string, 0, len(report.LeftOut))
	for _, each := range report.LeftOut {
		names = append(names, each.NodeSet)
	}
	refused := slices.Clone(report.LeftOut)
	if report.AllLeftOut {
		for _, name := range c.changes.Names() {
			if !slices.Contains(names, name) {
				refused = append(refused, leftOut{
					NodeSet: name,
					Detail:  "not validated yet, because slurmctld refuses too many others; correct those first",
				})
			}
		}
		names = c.changes.Names()
	}
	reduced, problem := seal(c.changes.LeaveOut(c.document, names), maps.Clone(c.files))
	reduced.leaving, reduced.held, reduced.waiting, reduced.names = c.leaving, c.held, c.waiting, c.names
	reduced.waitingNodes, reduced.awaitsRecords, reduced.keepsJobCount = c.waitingNodes, c.awaitsRecords, c.keepsJobCount
	reduced.refusedHash, reduced.refused, reduced.leftOut = c.hash, refused, slices.Concat(c.leftOut, refused)
	return reduced, problem
}

// candidate returns the configuration in force as a candidate, in place of the wanted one that slurmctld refused.
func (p *promoted) candidate(wanted candidate) candidate {
	return candidate{
		document: p.document(), files: p.files, hash: p.hash, leaving: p.leaving, held: wanted.held,
		waiting: wanted.waiting, waitingNodes: wanted.waitingNodes, keepsJobCount: wanted.keepsJobCount,
		closedBefore: p.closedBefore, openStates: p.openStates,
		awaitsRecords: wanted.awaitsRecords, names: wanted.names,
		refusedHash: p.refusedHash, refused: p.refused, leftOut: slices.Concat(wanted.leftOut, p.refused),
	}
}

// leftOutMessage describes which NodeSets are left out, why, and what to do.
func leftOutMessage(sets []leftOut) string {
	texts := make([]string, len(sets))
	for i, set := range sets {
		texts[i] = "NodeSet " + set.NodeSet + ": " + set.Detail
	}
	return fmt.Sprintf(
		"without what these NodeSets ask for: %s. Correct spec.partition.config, or the GRES in spec.gres and "+
			"spec.extraConf, of the NodeSet; "+
			"what it had in force before stays in force", strings.Join(texts, "; "))
}
