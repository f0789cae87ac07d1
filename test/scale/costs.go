package scale

import (
	"errors"
	"fmt"
)

// CheckCosts returns an error for everything that costs more requests than it may. It does not look at durations, so
// the result depends neither on the computer nor on its load.
func (r NodeSetResult) CheckCosts() error {
	const (
		writesPerPod  = 1.05 // creating the pod
		statusPerPod  = 1.3  // a pod's conditions, and its NodeSet's status meanwhile
		updatesPerPod = 0.02 // in Slurm
		fixed         = 10   // independent of the number of pods
	)
	pods := float64(r.NodeSet.Pods)
	writes, status := perPod(r.Creation.Writes, r.NodeSet.Pods)
	var errs []error
	for _, cost := range []struct {
		name         string
		actual, most float64
	}{
		{"writes while creating", writes * pods, writesPerPod*pods + fixed},
		{"writes of status while creating", status * pods, statusPerPod*pods + fixed},
		{"updates of Slurm while creating", float64(r.Creation.SlurmUpdates), updatesPerPod*pods + fixed},
		{"updates of Slurm while scaling in", float64(r.ScaleIn.SlurmUpdates), fixed},
		{"writes a minute while idle", r.Idle.Writes, 0},
	} {
		if cost.actual > cost.most {
			errs = append(errs, fmt.Errorf("%s: %.0f, at most %.0f are allowed for %d pods",
				cost.name, cost.actual, cost.most, r.NodeSet.Pods))
		}
	}
	return errors.Join(errs...)
}
