package slurmclient

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// decide chooses the RestApi to use: ready ones first, then by name, so that the choice is stable.
func decide(scope *scope) (endpoint, bool) {
	if len(scope.restAPIs) == 0 || scope.jwtKey == nil || scope.controller.DeletionTimestamp != nil {
		return endpoint{}, false
	}
	chosen := slices.MinFunc(scope.restAPIs, func(a, b slinkyv1beta1.RestApi) int {
		return cmp.Or(compareReady(a, b), cmp.Compare(a.Name, b.Name))
	})
	found := endpoint{
		url:   fmt.Sprintf("http://%s.%s:%d", naming.RestAPI(chosen.Name), chosen.Namespace, chosen.Spec.Service.Port),
		ready: ready(chosen),
	}
	if scope.controller.Spec.Metrics.Enabled && !scope.controller.Spec.External {
		found.metrics = fmt.Sprintf("http://%s.%s:%d", naming.Controller(scope.controller.Name),
			scope.controller.Namespace, scope.controller.Spec.Service.Port)
	}
	return found, true
}

func compareReady(a, b slinkyv1beta1.RestApi) int {
	switch {
	case ready(a) == ready(b):
		return 0
	case ready(a):
		return -1
	}
	return 1
}

func ready(restAPI slinkyv1beta1.RestApi) bool {
	return meta.IsStatusConditionTrue(restAPI.Status.Conditions, slinkyv1beta1.ConditionReady)
}
