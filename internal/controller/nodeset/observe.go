package nodeset

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/observation"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A scope is what a reconcile observes. It does not change after observe. Pods and Kubernetes nodes are shared with the
// cache and must not be changed.
type scope struct {
	set *slinkyv1beta1.NodeSet
	// controller is nil if it does not exist or is being deleted.
	controller *slinkyv1beta1.Controller
	// session is nil without a connection to Slurm.
	session *slurm.Session
	// template is for new pods; nil if problem says why there is none.
	template *corev1.PodTemplateSpec
	problem  *status.Verdict
	revision revision
	// awaited are the GRES that slurmctld must know before pods are created.
	awaited []string
	// partition is how the partition with which slurmctld runs compares to a changed one of the NodeSet.
	partition desired.PartitionState
	pods      []corev1.Pod
	// foreign are those of pods that another operator made.
	foreign []*corev1.Pod
	// orphans will be adopted, strays are pods that will be released.
	orphans, strays []client.Object
	byName          map[string]*corev1.Pod
	nodes           map[string]*corev1.Node
	// pins is nil without spec.pinToNode.
	pins desired.Pins
	// unprovisioned says that the spec asks for ProvisioningRequests, whose CRD is not installed.
	unprovisioned bool
	snapshot      plan.Snapshot
	now           time.Time
	// reading is how long the reads of Slurm for the plan took.
	reading time.Duration
}

func (r *Reconciler) observe(ctx context.Context, request ctrl.Request) (*scope, error) {
	set := &slinkyv1beta1.NodeSet{}
	if err := r.Client.Get(ctx, request.NamespacedName, set); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	scope := &scope{set: set, now: r.Clock.Now()}
	if err := r.observeController(ctx, scope); err != nil {
		return nil, err
	}
	if err := r.observePods(ctx, scope); err != nil {
		return nil, err
	}
	if err := r.observeOrphans(ctx, scope); err != nil {
		return nil, err
	}
	if err := r.observeRevision(ctx, scope); err != nil {
		return nil, err
	}
	if err := r.observeGres(ctx, scope); err != nil {
		return nil, err
	}
	if err := r.observeNodes(ctx, scope); err != nil {
		return nil, err
	}
	scope.snapshot.Pods = make([]plan.Pod, len(scope.pods))
	for i := range scope.pods {
		scope.snapshot.Pods[i] = observation.Pod(&scope.pods[i])
	}
	if err := r.observePins(ctx, scope); err != nil {
		return nil, err
	}
	scope.snapshot.Set = observation.Set(set, scope.revision.hash, wanted(scope), scope.now)
	if err := r.observeElastic(ctx, scope); err != nil {
		return nil, err
	}
	if err := r.observeRequests(ctx, scope); err != nil {
		return nil, err
	}
	scope.snapshot.Set.Withheld = withheld(scope)
	if scope.snapshot.Set.Deleting && scope.controller == nil && !scope.snapshot.Set.Waived {
		gone, err := r.clusterGone(ctx, scope)
		if err != nil {
			return nil, err
		}
		scope.snapshot.Set.Waived = gone
	}
	r.readMirror(scope)
	return scope, nil
}

func (r *Reconciler) observeController(ctx context.Context, scope *scope) error {
	var err error
	scope.controller, err = reference.Object(ctx, r.Client, scope.set.Namespace, scope.set.Spec.ControllerRef.Name,
		&slinkyv1beta1.Controller{})
	if err != nil {
		return err
	}
	scope.session, _ = r.Pool.Get(slurm.Key{Namespace: scope.set.Namespace, Name: scope.set.Spec.ControllerRef.Name})
	return nil
}

// clusterGone reports whether the slurmctld that ran the jobs is gone for good: an external one never is, and one in
// Kubernetes only when its last pod has terminated.
func (r *Reconciler) clusterGone(ctx context.Context, scope *scope) (bool, error) {
	if slices.ContainsFunc(scope.pods, func(pod corev1.Pod) bool { return worker.IsExternal(&pod) }) {
		return false, nil
	}
	slurmctlds := &corev1.PodList{}
	err := r.Client.List(ctx, slurmctlds, client.InNamespace(scope.set.Namespace),
		client.MatchingLabels(naming.Selector(naming.Slurmctld,
			scope.set.Spec.ControllerRef.Name)), client.UnsafeDisableDeepCopy)
	return err == nil && len(slurmctlds.Items) == 0, err
}

// observePods finds the NodeSet's pods, ordered by ordinal, and those to adopt or release.
func (r *Reconciler) observePods(ctx context.Context, scope *scope) error {
	list := &corev1.PodList{}
	err := index.PodsByNodeSet.List(ctx, r.Client, client.ObjectKeyFromObject(scope.set), list,
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	type numbered struct {
		ordinal int
		pod     *corev1.Pod
	}
	selector := labels.SelectorFromSet(naming.Selector(naming.Slurmd, scope.set.Name))
	own := make([]numbered, 0, len(list.Items)) // pods are large, and sorting copies
	for i := range list.Items {
		if pod := &list.Items[i]; scope.owns(pod, selector) {
			own = append(own, numbered{observation.Ordinal(pod), pod})
		}
	}
	slices.SortFunc(own, func(a, b numbered) int {
		return cmp.Or(cmp.Compare(a.ordinal, b.ordinal), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	scope.pods = make([]corev1.Pod, len(own))
	scope.byName = make(map[string]*corev1.Pod, len(own))
	for i := range own {
		scope.pods[i] = *own[i].pod
		scope.byName[own[i].pod.Name] = &scope.pods[i]
	}
	return nil
}

// observeNodes finds the Kubernetes nodes of the pods, and in DaemonSet mode all others too.
func (r *Reconciler) observeNodes(ctx context.Context, scope *scope) error {
	scope.nodes = map[string]*corev1.Node{}
	if observation.IsDaemonSet(scope.set) {
		list := &corev1.NodeList{}
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for i := range list.Items {
			scope.nodes[list.Items[i].Name] = &list.Items[i]
		}
	}
	for i := range scope.pods {
		name := observation.HostOf(&scope.pods[i])
		if _, known := scope.nodes[name]; known || name == "" || observation.IsDaemonSet(scope.set) {
			continue
		}
		node := &corev1.Node{}
		switch err := r.Client.Get(ctx, client.ObjectKey{Name: name}, node, client.UnsafeDisableDeepCopy); {
		case err == nil:
			scope.nodes[name] = node
		case !apierrors.IsNotFound(err):
			return err
		}
	}
	scope.snapshot.KubernetesNodes = make(map[string]plan.KubernetesNode, len(scope.nodes))
	for name, node := range scope.nodes {
		scope.snapshot.KubernetesNodes[name] = observation.KubernetesNode(scope.set, scope.template, node)
	}
	return nil
}

// withheld returns why no pod can be created; empty if pods can.
func withheld(scope *scope) string {
	switch {
	case scope.problem != nil:
		return scope.problem.Message
	case scope.template == nil:
		return "the Controller's status does not say yet whether jobs are confined, or which user its daemons have"
	case len(scope.awaited) > 0:
		return "slurmctld does not run with a configuration that has the GRES " + strings.Join(scope.awaited, ", ")
	default:
		return ""
	}
}

// wanted returns how many pods the NodeSet should have.
func wanted(scope *scope) int {
	switch {
	case scope.set.Spec.Elastic != nil:
		return len(scope.pods)
	case !observation.IsDaemonSet(scope.set):
		return observation.Replicas(scope.set)
	}
	count := 0
	for _, node := range scope.snapshot.KubernetesNodes {
		if node.Wanted {
			count++
		}
	}
	return count
}
