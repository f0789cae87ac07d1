package nodeset

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
)

func TestCreationIsResumedOnlyIfNothingElseHasChanged(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		kind   func(*slinkyv1beta1.NodeSetSpec)
		change func(*scope)
		want   int
	}{
		"nothing has changed":          {want: 2},
		"the spec has changed":         {change: func(s *scope) { s.set.Generation++ }},
		"the template has changed":     {change: func(s *scope) { s.revision.hash = "r2" }},
		"the NodeSet is being deleted": {change: func(s *scope) { s.set.DeletionTimestamp = new(metav1.Now()) }},
		"no pods may be created":       {change: func(s *scope) { s.snapshot.Set.Withheld = "invalid" }},
		"the plan is too old":          {change: func(s *scope) { s.now = began.Add(maxPlanAge + 1) }},
		"it is another NodeSet":        {change: func(s *scope) { s.set.UID = "other" }},
		"pods follow Kubernetes nodes": {kind: func(s *slinkyv1beta1.NodeSetSpec) {
			s.ScalingMode = slinkyv1beta1.ScalingModeDaemonSet
		}},
		"pods follow the jobs in Slurm": {kind: func(s *slinkyv1beta1.NodeSetSpec) {
			s.Elastic = &slinkyv1beta1.NodeSetElastic{}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var rest unfinished
			scope := &scope{
				set: &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{UID: "set", Generation: 3}}, now: began,
				revision: revision{hash: "r1"},
			}
			if test.kind != nil {
				test.kind(&scope.set.Spec)
			}
			rest.keep(scope, creation{
				planned: began, generation: 3, revision: "r1", additions: make([]plan.Action, 2),
			})
			if test.change != nil {
				test.change(scope)
			}
			if got := len(rest.take(scope).additions); got != test.want {
				t.Errorf("%d pods are created, want %d", got, test.want)
			}
			if again := len(rest.take(scope).additions); again != 0 {
				t.Errorf("%d pods are created again", again)
			}
		})
	}
}

func TestCompletedCreationIsNotResumed(t *testing.T) {
	var rest unfinished
	scope := &scope{set: &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{UID: "set"}}}
	rest.keep(scope, creation{additions: make([]plan.Action, 2)})
	rest.keep(scope, creation{})
	if got := rest.take(scope); got.additions != nil || len(rest.bySet) > 0 {
		t.Errorf("%+v is resumed", got)
	}
	rest.keep(scope, creation{additions: make([]plan.Action, 2)})
	rest.forget(scope.set.UID)
	if got := rest.take(scope); got.additions != nil {
		t.Errorf("%+v is resumed although there is a new plan", got)
	}
}
