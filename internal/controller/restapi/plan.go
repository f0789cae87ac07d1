package restapi

import (
	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A plan is the result of a reconcile's decisions.
type plan struct {
	// children are the desired objects; nil to leave them unchanged.
	children *children
	// verdict is the reason if there are no children.
	verdict status.Verdict
}

// obstacle returns the plan if nothing can be done.
func obstacle(verdict status.Verdict) plan { return plan{verdict: verdict} }

// decide makes a plan from the configuration that slurmctld runs with. Without one, existing objects are left
// unchanged, because they may still be usable.
func decide(scope *scope) plan {
	controller := scope.restAPI.Spec.ControllerRef.Name
	if scope.controller == nil {
		return obstacle(status.Degraded(slinkyv1beta1.ReasonControllerNotFound,
			"Controller %s, which spec.controllerRef names, does not exist; create it", controller))
	}
	if scope.configuration == "" {
		return obstacle(status.Progressing(slinkyv1beta1.ReasonControllerNotReady,
			"Controller %s has no configuration yet", controller))
	}
	document, err := slurmconf.Parse(scope.configuration)
	if err != nil {
		return obstacle(status.Progressing(slinkyv1beta1.ReasonControllerNotReady,
			"the configuration of Controller %s is damaged: %v", controller, err))
	}
	children, err := build(scope.restAPI, scope.image, slurmconf.Clients(document))
	if err != nil {
		return obstacle(status.Degraded(slinkyv1beta1.ReasonInvalidSpec, "%v", err))
	}
	return plan{children: &children}
}
