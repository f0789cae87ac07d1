package cluster

import (
	"maps"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Somebody may edit the ConfigMap with the configuration in force. slurmctld then reads at its next start what no
// validation run has accepted, and it already shows the hash of that configuration. So the files are compared, too.

// lacks reports whether files in the ConfigMap differ from those of a configuration. Files that others have added do
// not count, because they are not removed.
func (p *promoted) lacks(files map[string]string) bool {
	for name, content := range files {
		if is, exists := p.files[name]; !exists || is != content {
			return true
		}
	}
	return false
}

// isEdited reports whether a configuration with open partitions was changed after it had been promoted, in those of its
// files that another configuration has, too.
func (p *promoted) isEdited(files map[string]string) bool {
	own := maps.Clone(p.files)
	maps.DeleteFunc(own, func(name, _ string) bool {
		_, exists := files[name]
		return !exists
	})
	return slurmconf.Hash(own) != p.hash
}

// unedited returns the configuration of the spec if it is the one that was edited. What is kept from a configuration in
// force for the sake of jobs must not be taken from the edit: slurmctld does not run with that.
func unedited(scope *scope) (candidate, bool) {
	live := scope.promoted
	if live == nil || live.foreign || live.isClosed() || live.image != scope.image || scope.controller.Spec.External ||
		slurmconf.Hash(live.files) == live.hash {
		return candidate{}, false
	}
	fresh := *scope
	fresh.promoted = nil
	original, problem := build(&fresh)
	return original, problem == nil && original.hash == live.hash && live.lacks(original.files)
}
