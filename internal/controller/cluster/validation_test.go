package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
)

// A validation run that cannot start is not waited for when the spec is corrected.
func TestCorrectedPodOfAValidationRunReplacesIt(t *testing.T) {
	template := func(spec string) func(*scope) {
		return func(s *scope) { s.controller.Spec.Template.Spec.Raw = []byte(spec) }
	}
	hash := hashOf(t, newScope())
	for name, test := range map[string]struct {
		change func(*scope)
		stage  stage
	}{
		"as before":     {func(*scope) {}, validating},
		"node selector": {template(`{"nodeSelector":{"disk":"ssd"}}`), begin},
		"toleration":    {template(`{"tolerations":[{"operator":"Exists"}]}`), begin},
		"priority":      {template(`{"priorityClassName":"high"}`), begin},
		"resources": {func(s *scope) {
			s.controller.Spec.Slurmctld.Raw = []byte(`{"image":"new","resources":{"requests":{"cpu":"1"}}}`)
		}, begin},
		"resources of slurmctld's agent": {func(s *scope) {
			s.controller.Spec.Reconfigure.Raw = []byte(`{"resources":{"requests":{"cpu":"1"}}}`)
		}, validating},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(validateWith(hash, nil))
			before := validationName(scope, candidate{hash: hash})
			test.change(scope)
			next := decide(scope)
			if next.stage != test.stage || next.endValidation != (test.stage == begin) {
				t.Errorf("stage %d, ends the run: %t", next.stage, next.endValidation)
			}
			if is := validationName(scope, candidate{hash: hash}); (is == before) != (test.stage == validating) {
				t.Errorf("the name was %s, and is %s", before, is)
			}
		})
	}
}

// The pod of a lost Kubernetes node stays until somebody deletes the node. Another run does not wait for that.
func TestValidationRunOnLostKubernetesNodeIsReplaced(t *testing.T) {
	candidate := candidate{hash: "h"}
	before := validationName(newScope(), candidate)
	for name, test := range map[string]struct {
		overdue time.Duration
		another bool
	}{
		"the pod is terminating":                    {overdue: -10 * time.Second},
		"the pod should have terminated just now":   {overdue: time.Second},
		"the pod should have terminated long since": {overdue: time.Minute, another: true},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(func(s *scope) {
				s.endingRuns = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{
					Name: before, UID: types.UID("a"), DeletionTimestamp: new(metav1.NewTime(start.Add(-test.overdue))),
				}}}
			})
			if is := validationName(scope, candidate); (is != before) != test.another {
				t.Errorf("the name was %s, and is %s", before, is)
			}
			if next := decide(scope); next.stage != begin || next.requeueAfter(scope) == 0 {
				t.Errorf("stage %d, next after %s", next.stage, next.requeueAfter(scope))
			}
		})
	}
}

// What keeps a validation run from starting is named, and it is polled: its end may cause no event.
func TestValidationRunThatDoesNotStartIsReported(t *testing.T) {
	scope := newScope(validateWith(hashOf(t, newScope()), nil))
	scope.validation.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available",
	}}
	next := decide(scope)
	if after := next.requeueAfter(scope); next.stage != validating || after != validationRetryInterval {
		t.Errorf("stage %d, next after %s", next.stage, after)
	}
	state := configurationCondition(scope, next)
	if state.Reason != slinkyv1beta1.ReasonTrialFailed || !strings.Contains(state.Message, "0/3 nodes are available") {
		t.Errorf("the condition is %+v", state)
	}
}

// The pod of the earlier run is deleted first.
func TestValidationRunOfAnEarlierSpecIsDeleted(t *testing.T) {
	scope := newScope(validateWith(hashOf(t, newScope()), &validation.Report{Outcome: validation.Refused}))
	scope.validation.Namespace, scope.validation.OwnerReferences = "ns", ownedBy(scope)
	reconciler := reconcilerWith(t, interceptor.Funcs{}, scope.validation)
	scope.controller.Spec.Template.Spec.Raw = []byte(`{"nodeSelector":{"disk":"ssd"}}`)
	plan := decide(scope)
	if err := reconciler.act(t.Context(), scope, &plan); err != nil {
		t.Fatal(err)
	}
	pods := &corev1.PodList{}
	if err := reconciler.Client.List(t.Context(), pods); err != nil || len(pods.Items) != 1 ||
		pods.Items[0].Spec.NodeSelector["disk"] != "ssd" {
		t.Errorf("%v: %+v", err, pods.Items)
	}
}
