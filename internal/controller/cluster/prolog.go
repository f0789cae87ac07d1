package cluster

import "github.com/slurm-operator/slurm-operator/internal/slurmconf"

// sshd and confinement need PrologFlags=Contain, which must not be added while jobs run: see slurmconf.KeepPrologFlags.
// So every new cluster has it from the beginning, and keeps it.

// contains reports whether each job has a step for processes from outside.
func (s *scope) contains(sets contributed) bool {
	return s.isNew() || s.confines() || sets.sshd || slurmconf.HasExternStep(s.inForce())
}

// keepPrologFlags keeps PrologFlags as it is in force while jobs run, if it differs in a way that ends them.
func keepPrologFlags(scope *scope, document slurmconf.Document) (kept slurmconf.Document, keeps bool) {
	if scope.promoted == nil || scope.isIdle() {
		return document, false
	}
	return slurmconf.KeepPrologFlags(document, scope.promoted.document())
}

// isIdle reports whether no job holds a node.
func (s *scope) isIdle() bool {
	return s.nodes != nil && len(s.nodes.Loads) == 0 && s.nodes.Running == 0 && s.nodes.Unplaced == 0
}

// prologMessage describes that PrologFlags is kept.
func prologMessage(keeps bool) string {
	if !keeps {
		return ""
	}
	return "; the change of PrologFlags (for ssh on Slurm nodes, or in extraConf) waits until no job is running, because " +
		"Slurm would requeue running jobs (to get there, create a reservation with Flags=MAINT for all nodes)"
}
