package nodeset

import (
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// Name is the controller's name, in logs, metrics and events.
const Name = "nodeset"

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=nodesets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=nodesets/status,verbs=patch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=nodesets/finalizers,verbs=update
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=controllers;accountings,verbs=get;list;watch
// +kubebuilder:rbac:groups=core,resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=core,resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups=core,resources=services;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=core,resources=secrets,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=core,resources=persistentvolumeclaims,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=core,resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=core,resources=podtemplates,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=autoscaling.x-k8s.io,resources=provisioningrequests,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete

// SetupWithManager watches NodeSets, the objects that they own, Kubernetes nodes, Controllers with their Accountings
// and configurations, and Slurm itself.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	controller, err := ctrl.NewControllerManagedBy(manager).
		Named(Name).
		WithOptions(retry.Options(Name, "NodeSet", r.NewQueue)).
		For(&slinkyv1beta1.NodeSet{},
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{},
				predicate.AnnotationChangedPredicate{}))).
		Watches(&corev1.Pod{}, handler.Funcs{
			CreateFunc: func(_ context.Context, event event.CreateEvent, queue workQueue) {
				r.podChanged(queue, event.Object)
			},
			UpdateFunc: func(_ context.Context, event event.UpdateEvent, queue workQueue) {
				r.podChanged(queue, event.ObjectOld, event.ObjectNew)
			},
			DeleteFunc: func(_ context.Context, event event.DeleteEvent, queue workQueue) {
				r.podChanged(queue, event.Object)
				r.nameFreed(queue, event.Object)
			},
		}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Service{}, index.OwnerHandler(r.Client, "Controller", index.NodeSetsByController),
			builder.WithPredicates(ofController(naming.WorkerHosts))).
		Watches(&corev1.ConfigMap{}, index.OwnerHandler(r.Client, "Controller", index.NodeSetsByController),
			builder.WithPredicates(ofController(naming.Configuration))).
		Owns(&appsv1.ControllerRevision{}).
		Owns(&policyv1.PodDisruptionBudget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.setsOnKubernetesNode),
			builder.WithPredicates(kubernetesNodeChanged)).
		Watches(&slinkyv1beta1.Controller{}, index.Handler(r.Client, index.NodeSetsByController),
			builder.WithPredicates(controllerChanged)).
		Watches(&corev1.Pod{}, index.PodHandler(r.Client, naming.Slurmctld, index.NodeSetsByController),
			builder.WithPredicates(onlyDeletions)).
		Watches(&slinkyv1beta1.Accounting{},
			index.Handler(r.Client, index.ControllersByAccounting,
				index.NodeSetsByController), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Func(r.watchPool)).
		Build(r)
	if err != nil {
		return err
	}
	r.setUpRequestWatch(manager, controller)
	return nil
}

type workQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// podChanged enqueues the NodeSets that own pods, or may adopt them, after a delay.
func (r *Reconciler) podChanged(queue workQueue, pods ...client.Object) {
	for _, pod := range pods {
		for _, request := range index.PodsByNodeSet.Names(pod) {
			queue.AddAfter(request, r.eventDelays.of(request.NamespacedName))
		}
	}
}

// nameFreed enqueues the NodeSets that wait for the name of a pod's Slurm node.
func (r *Reconciler) nameFreed(queue workQueue, pod client.Object) {
	for _, name := range index.PodsBySlurmNode.Names(pod) {
		for _, set := range r.names.free(name.NamespacedName) {
			queue.AddAfter(reconcile.Request{NamespacedName: set}, minEventDelay)
		}
	}
}

// controllerChanged passes changes of the spec, and of the configuration that slurmctld runs with, for which pods may
// wait.
var controllerChanged = predicate.Funcs{
	UpdateFunc: func(update event.UpdateEvent) bool {
		before, ok := update.ObjectOld.(*slinkyv1beta1.Controller)
		after, same := update.ObjectNew.(*slinkyv1beta1.Controller)
		return !ok || !same || before.Generation != after.Generation ||
			before.Status.AppliedConfigHash != after.Status.AppliedConfigHash ||
			before.Status.JobConfinement != after.Status.JobConfinement ||
			!equality.Semantic.DeepEqual(before.Status.SlurmUser, after.Status.SlurmUser)
	},
}

// onlyDeletions passes deletions alone. A NodeSet that is deleted after its Controller waits until slurmctld has
// terminated.
var onlyDeletions = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

// ofController passes the object of each Controller that has a certain name. The NodeSets of a Controller share the
// Service for the DNS names of their pods, and read the configuration of slurmctld.
func ofController(nameOf func(controller string) string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		owner := metav1.GetControllerOf(object)
		return owner != nil && object.GetName() == nameOf(owner.Name)
	})
}

// kubernetesNodeChanged passes changes that concern NodeSets, and no heartbeats.
var kubernetesNodeChanged = predicate.Funcs{
	UpdateFunc: func(update event.UpdateEvent) bool {
		before, ok := update.ObjectOld.(*corev1.Node)
		after, same := update.ObjectNew.(*corev1.Node)
		return !ok || !same ||
			before.Spec.Unschedulable != after.Spec.Unschedulable ||
			!equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) ||
			!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
			!slices.EqualFunc(before.Status.Conditions, after.Status.Conditions, func(a, b corev1.NodeCondition) bool {
				return a.Type == b.Type && a.Status == b.Status
			})
	},
}

// setsOnKubernetesNode enqueues the NodeSets with a pod on a Kubernetes node, and all in DaemonSet mode.
func (r *Reconciler) setsOnKubernetesNode(ctx context.Context, node client.Object) []reconcile.Request {
	sets := r.setsOfPods(ctx, index.PodsByKubernetesNode, types.NamespacedName{Name: node.GetName()})
	requests, err := index.NodeSetsByMode.Requests(ctx, r.Client,
		types.NamespacedName{Name: string(slinkyv1beta1.ScalingModeDaemonSet)})
	if err != nil {
		panic(err) // a missing index, which every test shows: the cache itself always answers
	}
	for _, request := range requests {
		sets[request] = true
	}
	return slices.Collect(maps.Keys(sets))
}

// setsOfPods returns the NodeSets whose pods refer to an object.
func (r *Reconciler) setsOfPods(ctx context.Context, references index.Index,
	referenced types.NamespacedName) map[reconcile.Request]bool {
	sets := map[reconcile.Request]bool{}
	pods := &corev1.PodList{}
	if err := references.List(ctx, r.Client, referenced, pods, client.UnsafeDisableDeepCopy); err != nil {
		panic(err) // a missing index, which every test shows: the cache itself always answers
	}
	for i := range pods.Items {
		if set, slurmd := naming.Instance(naming.Slurmd, pods.Items[i].Labels); slurmd {
			sets[reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pods.Items[i].Namespace,
				Name: set}}] = true
		}
	}
	return sets
}

// watchPool enqueues the NodeSets whose Slurm nodes changed, or whose cluster connected or disconnected.
func (r *Reconciler) watchPool(ctx context.Context, queue workQueue) error {
	go r.Pool.Subscribe().Follow(ctx, func(events []slurm.Event) {
		sets := map[reconcile.Request]bool{}
		r.addElasticSets(ctx, sets, events)
		for _, event := range events {
			cluster := types.NamespacedName{Namespace: event.Cluster.Namespace, Name: event.Cluster.Name}
			if event.Node != "" {
				maps.Copy(sets, r.setsOfSlurmNode(ctx, event))
				continue
			}
			requests, err := index.NodeSetsByController.Requests(ctx, r.Client, cluster)
			if err != nil {
				panic(err) // as above
			}
			for _, request := range requests {
				sets[request] = true
			}
		}
		for set := range sets {
			queue.Add(set)
		}
	})
	return nil
}

// setsOfSlurmNode returns the NodeSets with a pod for a Slurm node. Without a pod, it is the one that the record names:
// it may have to delete the record.
func (r *Reconciler) setsOfSlurmNode(ctx context.Context, event slurm.Event) map[reconcile.Request]bool {
	sets := r.setsOfPods(ctx, index.PodsBySlurmNode, types.NamespacedName{
		Namespace: event.Cluster.Namespace, Name: event.Node,
	})
	if session, known := r.Pool.Get(event.Cluster); known && len(sets) == 0 {
		if owner, recorded := ownerOf(session.Mirror.Snapshot(), event); recorded {
			sets[owner] = true
		}
	}
	return sets
}

// ownerOf returns the NodeSet that the record of a Slurm node names. It is in the namespace of the cluster.
func ownerOf(snapshot *slurm.Snapshot, event slurm.Event) (set reconcile.Request, recorded bool) {
	if snapshot == nil {
		return set, false
	}
	record, known := snapshot.Node(event.Node)
	if !known {
		return set, false
	}
	owner, err := slurm.ParseOwner(record.Comment)
	if err != nil || owner.NodeSetName == "" || owner.Namespace != event.Cluster.Namespace {
		return set, false
	}
	set.NamespacedName = types.NamespacedName{Namespace: owner.Namespace, Name: owner.NodeSetName}
	return set, true
}

// addElasticSets adds the NodeSets of the Slurm nodes in events by their names. Those of NodeSets that are elastic, or
// were, need not have pods.
func (r *Reconciler) addElasticSets(ctx context.Context, sets map[reconcile.Request]bool, events []slurm.Event) {
	changed := map[slurm.Key][]string{} // Slurm nodes
	for _, event := range events {
		if event.Node != "" {
			changed[event.Cluster] = append(changed[event.Cluster], event.Node)
		}
	}
	for cluster, nodes := range changed {
		all := &slinkyv1beta1.NodeSetList{}
		if err := index.NodeSetsByController.List(ctx, r.Client, types.NamespacedName(cluster), all,
			client.UnsafeDisableDeepCopy); err != nil {
			panic(err) // as above
		}
		for i := range all.Items {
			set := &all.Items[i]
			ordinalOf := naming.WorkerOrdinals(set)
			if slices.ContainsFunc(nodes, func(node string) bool {
				_, own := ordinalOf(node)
				return own
			}) {
				sets[reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)}] = true
			}
		}
	}
}
