package cluster

import "github.com/slurm-operator/slurm-operator/internal/slurmconf"

// sshd and confinement need PrologFlags=Contain, which must not be added while jobs run: see slurmconf.KeepForJobs. So
// every new cluster has it from the beginning, and keeps it.

// contains reports whether each job has a step for processes from outside.
func (s *scope) contains(sets contributed) bool {
	return s.isNew() || s.confines() || sets.sshd || slurmconf.HasExternStep(s.inForce())
}
