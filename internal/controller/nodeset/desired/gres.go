package desired

import (
	"slices"
	"strings"
)

// UnknownGres returns those GRES types that slurmctld does not know, given its slurm.conf and the hash of the
// configuration that it runs with. Pods wait for it: a Slurm node that registers with an unknown GRES gets a record
// without it, which neither a reconfigure nor an update of the Slurm node corrects.
func UnknownGres(types []string, conf, runningHash string) []string {
	document, running := runningConf(conf, runningHash)
	if !running {
		return types
	}
	known, _ := document.Get("GresTypes")
	return slices.DeleteFunc(slices.Clone(types), func(gres string) bool {
		return slices.Contains(strings.Split(known, ","), gres)
	})
}
