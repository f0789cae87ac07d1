package restapi

import (
	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A plan is what to do about a RestApi.
type plan struct {
	// children are what is to exist; nil when they stay as they are.
	children *children
	// verdict says why.
	verdict status.Verdict
}

// obstacle is the plan when nothing can be done.
func obstacle(verdict status.Verdict) plan { return plan{verdict: verdict} }

// decide takes what slurmrestd needs from the configuration that slurmctld runs with. Without one, what exists stays: it
// may well be of use still.
func decide(scope *scope) plan {
	controller := scope.restAPI.Spec.ControllerRef.Name
	if scope.controller == nil {
		return obstacle(status.Broken(slinkyv1beta1.ReasonControllerNotFound,
			"Controller %s, which spec.controllerRef names, does not exist; create it", controller))
	}
	if scope.configuration == "" {
		return obstacle(status.Working(slinkyv1beta1.ReasonControllerNotReady, "Controller %s has no configuration yet", controller))
	}
	whole, err := slurmconf.Parse(scope.configuration)
	if err != nil {
		return obstacle(status.Working(slinkyv1beta1.ReasonControllerNotReady, "the configuration of Controller %s is damaged: %v", controller, err))
	}
	children, err := build(scope.restAPI, scope.image, slurmconf.Clients(whole))
	if err != nil {
		return obstacle(status.Broken(slinkyv1beta1.ReasonInvalidSpec, "%v", err))
	}
	return plan{children: &children}
}
