package cluster

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// reconcilerWith returns a Reconciler of an in-memory API server that refuses writes as refuse says; nil refuses none.
func reconcilerWith(t *testing.T, calls interceptor.Funcs, objects ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, slinkyv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(calls).Build()
	return &Reconciler{Client: cluster, Children: child.NewApplier(cluster)}
}

// ownedBy returns the ownerReference to a scope's Controller.
func ownedBy(scope *scope) []metav1.OwnerReference {
	scope.controller.UID = "c"
	return []metav1.OwnerReference{
		*metav1.NewControllerRef(scope.controller, slinkyv1beta1.SchemeGroupVersion.WithKind("Controller")),
	}
}

// servicesRefused refuses Services as the API server does if the nodePort is in use.
var servicesRefused = interceptor.Funcs{
	Apply: func(ctx context.Context, to client.WithWatch, object runtime.ApplyConfiguration,
		options ...client.ApplyOption) error {
		if text, err := json.Marshal(object); err == nil && strings.Contains(string(text), `"kind":"Service"`) {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "slurm", nil)
		}
		return to.Apply(ctx, object, options...)
	},
}

// withState adds the PVC with the saved state of a slurmctld that has run.
func withState(s *scope) {
	s.state = &corev1.PersistentVolumeClaim{}
	s.controller.Status.AppliedConfigHash = "good"
}

// A mistake in the spec, or an object that Kubernetes refuses, must not keep slurmctld from starting again with the
// configuration in force.
func TestMissingSlurmctldIsRestoredDespiteProblems(t *testing.T) {
	typo := func(s *scope) { s.controller.Spec.ExtraConf = "SlurmctldPort=1" }
	scaled := func(replicas int32) func(*scope) {
		return func(s *scope) {
			s.statefulSet = ranWith("slurm-controller-state")
			s.statefulSet.Spec.Replicas = &replicas
		}
	}
	backups := func(s *scope) { s.controller.Spec.HA = slinkyv1beta1.ControllerHA{Enabled: true, Backups: 1} }
	type changes = []func(*scope)
	for name, test := range map[string]struct {
		changes
		refused  bool // the Services
		restored bool
	}{
		"mistake in the spec":      {changes: changes{typo}, restored: true},
		"ConfigMap is missing":     {changes: changes{func(s *scope) { s.missing = []string{"lost"} }}, restored: true},
		"refused Service":          {refused: true, restored: true},
		"StatefulSet scaled to 0":  {changes: changes{typo, scaled(0)}, restored: true},
		"StatefulSet as it was":    {changes: changes{typo, scaled(1)}},
		"backup not in force yet":  {changes: changes{typo, scaled(1), backups}},
		"nothing was promoted yet": {changes: changes{typo, func(s *scope) { s.promoted = nil }}},
		"image is not known":       {changes: changes{typo, func(s *scope) { s.promoted.image = "" }}},
		"cluster of another operator": {
			changes: changes{typo, func(s *scope) { s.promoted = &promoted{foreign: true, image: "old"} }},
		},
		"configuration of clients of an external slurmctld": {changes: changes{typo, func(s *scope) {
			s.promoted.files = map[string]string{slurmconf.FileName: "ClusterName=ns_slurm\n"}
		}}},
		"state is lost":                      {changes: changes{typo, scaled(0), func(s *scope) { s.state = nil }}},
		"state is lost with the StatefulSet": {changes: changes{typo, func(s *scope) { s.state = nil }}},
		"slurmctld has never run": {changes: changes{typo, func(s *scope) {
			s.state, s.controller.Status.AppliedConfigHash = nil, ""
		}}, restored: true},
		"state is being deleted": {changes: changes{typo, func(s *scope) {
			s.state.DeletionTimestamp = new(metav1.NewTime(start))
		}}},
		"PVC of the user is missing": {changes: changes{typo, func(s *scope) {
			s.controller.Spec.Persistence.ExistingClaim, s.claim, s.state = "mine", "mine", nil
		}}},
		"state would be left behind": {changes: changes{scaled(0), func(s *scope) {
			s.controller.Spec.Persistence.Enabled, s.nodes = new(false), nil
		}, func(s *scope) { s.claim = "" }}},
		"auth/slurm key is lost": {changes: changes{typo, func(s *scope) {
			s.promoted.slurmKey, s.slurmKey = "theirs", nil
		}}},
		"auth/slurm key is another": {changes: changes{typo, func(s *scope) { s.promoted.slurmKey = "other" }}},
		"state of a later release": {changes: changes{typo, scaled(0), func(s *scope) {
			s.promoted.slurmVersion = "25.05.1"
			s.statefulSet.Annotations[annotationStateRelease] = "26.05.1"
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(promoteWith("good", "old"), withState)
			scope.promoted.files[slurmconf.FileName] += "StateSaveLocation=/s\nSlurmctldHost=slurm-controller-0\n"
			for _, change := range test.changes {
				change(scope)
			}
			var calls interceptor.Funcs
			if test.refused {
				calls = servicesRefused
			}
			reconciler := reconcilerWith(t, calls)
			plan := decide(scope)
			err := reconciler.act(t.Context(), scope, &plan)
			if test.refused != (err != nil) {
				t.Errorf("the error is %v", err)
			}
			set := &appsv1.StatefulSet{}
			err = reconciler.Client.Get(t.Context(),
				client.ObjectKey{Namespace: "ns", Name: "slurm-controller"}, set)
			if client.IgnoreNotFound(err) != nil || test.restored != (err == nil) {
				t.Fatalf("StatefulSet: %v", err)
			}
			if test.restored && set.Spec.Template.Spec.Containers[0].Image != "old" {
				t.Errorf("the StatefulSet is %+v", set.Spec)
			}
		})
	}
}
