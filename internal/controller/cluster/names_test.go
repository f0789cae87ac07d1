package cluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// The name of a NodeSet in Slurm is recorded once it is in force, so that it is the same when the Controller is deleted
// and re-created.
func TestNameInForceIsRecorded(t *testing.T) {
	for name, test := range map[string]struct {
		stage stage
		older bool // the configuration in force has the NodeSet's own name
		want  string
	}{
		"validating":                {stage: validating},
		"promoted":                  {stage: promote, want: "gpu"},
		"in force":                  {stage: settled, want: "gpu"},
		"in force under older name": {stage: settled, older: true, want: "worker-gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(withPartitions("worker-gpu", "plain"))
			set := &scope.nodeSets[0]
			if test.older {
				promoteBuilt(t, scope)
			}
			withHostname(set)
			scheme := runtime.NewScheme()
			if err := slinkyv1beta1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			reconciler := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).
				WithObjects(set.DeepCopy(), scope.nodeSets[1].DeepCopy()).Build()}
			candidate, problem := build(scope)
			if problem != nil {
				t.Fatal(problem.Message)
			}
			plan := &plan{stage: test.stage, candidate: candidate}
			if err := reconciler.recordNames(t.Context(), scope, plan); err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{test.want, ""} {
				if err := reconciler.Client.Get(t.Context(), client.ObjectKeyFromObject(&scope.nodeSets[i]),
					&scope.nodeSets[i]); err != nil {
					t.Fatal(err)
				}
				if got := scope.nodeSets[i].Annotations[slinkyv1beta1.AnnotationSlurmName]; got != want {
					t.Errorf("the recorded name of %s is %q, want %q", scope.nodeSets[i].Name, got, want)
				}
			}
			scope.promoted = nil // the Controller is re-created
			again, problem := build(scope)
			if problem != nil {
				t.Fatal(problem.Message)
			}
			if test.want != "" && again.names["worker-gpu"] != test.want {
				t.Errorf("then the names are %v", again.names)
			}
		})
	}
}
