package accounting

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// newKubernetes returns an API server with the objects of a scope, and with the given reactions to requests. The pod of
// the scope is that of the API server then.
func newKubernetes(t *testing.T, scope *scope, react interceptor.Funcs) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, slinkyv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	scope.accounting.UID = "accounting"
	scope.statefulSet.ObjectMeta = metav1.ObjectMeta{
		Namespace: scope.accounting.Namespace, Name: naming.Accounting(scope.accounting.Name), UID: "set",
		Annotations: scope.statefulSet.Annotations, CreationTimestamp: scope.statefulSet.CreationTimestamp,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(scope.accounting,
			slinkyv1beta1.SchemeGroupVersion.WithKind("Accounting"))},
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(react).
		WithObjects(scope.accounting, scope.statefulSet)
	for i := range scope.pods {
		scope.pods[i].Namespace = scope.accounting.Namespace
		builder.WithObjects(&scope.pods[i])
	}
	kubernetes := builder.Build()
	for i := range scope.pods {
		if err := kubernetes.Get(t.Context(), client.ObjectKeyFromObject(&scope.pods[i]), &scope.pods[i]); err != nil {
			t.Fatal(err)
		}
	}
	return kubernetes
}

// imageOf returns the image of slurmdbd in the template of the StatefulSet.
func imageOf(t *testing.T, kubernetes client.Client) string {
	t.Helper()
	set := &appsv1.StatefulSet{}
	if err := kubernetes.Get(t.Context(), client.ObjectKey{Namespace: "hpc", Name: "slurm-accounting"}, set); err != nil {
		t.Fatal(err)
	}
	return containerOf(&set.Spec.Template.Spec).Image
}

// If the operator is killed between the two, the pod of the later release could convert the database, and the next one
// would be of the older release.
func TestPodOfLaterReleaseIsDeletedBeforeTemplateGetsOlderOne(t *testing.T) {
	for name, test := range map[string]struct {
		stale         bool // the pod has changed since it was read
		atDelete, end string
	}{
		"the pod has not started":      {false, "slurmdbd:26.05", "slurmdbd:25.11"},
		"the pod may have started now": {true, "slurmdbd:26.05", "slurmdbd:26.05"},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			replacing(scope, newSlurmdbd(waitingFor("ContainerCreating"), inImage("slurmdbd:26.05")), nil)
			scope.statefulSet.Annotations = map[string]string{annotationRelease: "25.11.1"}
			scope.statefulSet.Spec.Template.Spec.Containers = scope.pods[0].Spec.Containers
			scope.accounting.Spec.Slurmdbd.Raw = []byte(`{"image":"slurmdbd:25.11"}`)
			atDelete := ""
			var kubernetes client.Client
			kubernetes = newKubernetes(t, scope, interceptor.Funcs{
				Delete: func(ctx context.Context, next client.WithWatch, object client.Object,
					options ...client.DeleteOption) error {
					atDelete = imageOf(t, kubernetes)
					return next.Delete(ctx, object, options...)
				},
			})
			if test.stale {
				if err := kubernetes.Update(t.Context(), scope.pods[0].DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			reconciler := &Reconciler{Client: kubernetes, Children: child.NewApplier(kubernetes)}
			if err := reconciler.act(t.Context(), scope, decide(scope)); err != nil {
				t.Fatal(err)
			}
			if atDelete != test.atDelete {
				t.Errorf("when the pod is deleted, the next one would run %q", atDelete)
			}
			if got := imageOf(t, kubernetes); got != test.end {
				t.Errorf("the next pod runs %q", got)
			}
		})
	}
}

// What the template must say about the database does not depend on the rest of the spec.
func TestStatefulSetIsCorrectedWhateverTheSpecSays(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*scope)
		fails  bool
	}{
		"the password does not exist": {func(s *scope) { s.password = "" }, false},
		"the Secret is not its own": {func(s *scope) {
			s.accounting.Spec.Slurmdbd.Raw = []byte(`{"image":"slurmdbd:26.05"}`)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			replacing(scope, newSlurmdbd(inImage("slurmdbd:26.05")), nil)
			scope.statefulSet.Annotations = map[string]string{annotationRelease: "25.11.1"}
			scope.statefulSet.Spec.Template.Spec = corev1.PodSpec{
				InitContainers: []corev1.Container{
					{Name: configurationName, Image: "slurmdbd:25.11"}, {Name: "mine", Image: "m"},
				},
				Containers: []corev1.Container{{Name: "slurmdbd", Image: "slurmdbd:25.11"}, {Name: "sidecar", Image: "s"}},
			}
			test.change(scope)
			kubernetes := newKubernetes(t, scope, interceptor.Funcs{})
			if err := kubernetes.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: "hpc", Name: "slurm-accounting",
			}}); err != nil {
				t.Fatal(err)
			}
			reconciler := &Reconciler{Client: kubernetes, Children: child.NewApplier(kubernetes)}
			if err := reconciler.act(t.Context(), scope, decide(scope)); (err != nil) != test.fails {
				t.Fatal(err)
			}
			set := &appsv1.StatefulSet{}
			if err := kubernetes.Get(t.Context(), client.ObjectKeyFromObject(scope.statefulSet), set); err != nil {
				t.Fatal(err)
			}
			spec := set.Spec.Template.Spec
			images := []string{spec.InitContainers[0].Image, spec.InitContainers[1].Image, spec.Containers[0].Image,
				spec.Containers[1].Image, set.Annotations[annotationRelease]}
			want := []string{"slurmdbd:26.05", "m", "slurmdbd:26.05", "s", "26.05.0"}
			if !slices.Equal(images, want) {
				t.Errorf("the StatefulSet has %q, want %q", images, want)
			}
			scope.statefulSet = set
			if again := decide(scope).correction; again != nil {
				t.Errorf("it is corrected again: %+v", again)
			}
		})
	}
}
