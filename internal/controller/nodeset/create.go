package nodeset

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/desired"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/observation"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// create creates the missing pods.
func (r *Reconciler) create(ctx context.Context, scope *scope, next *plan.Plan, _ *outcome) error {
	return r.createPods(ctx, scope, creation{
		planned: scope.now, generation: scope.set.Generation, revision: scope.revision.hash,
		additions: next.Of(plan.Create),
	})
}

// createPods creates pods, each after its PVCs. If there is not enough time, the rest is kept for the next reconcile.
func (r *Reconciler) createPods(ctx context.Context, scope *scope, wanted creation) error {
	additions := wanted.additions
	begun, err := slowStart(ctx, len(additions), func(index int) error {
		missing := additions[index].Pod
		identity := worker.Numbered(scope.set, missing.Ordinal, scope.pins[missing.Ordinal])
		if observation.IsDaemonSet(scope.set) {
			identity = worker.OnNode(scope.set, scope.nodes[missing.KubernetesNode])
		}
		ctx := trace.Because(trace.With(ctx, "slurmNode", identity.SlurmName), additions[index].Cause,
			additions[index].Why)
		err := r.createOne(ctx, scope, identity, additions[index].Request)
		if err == nil {
			r.done(scope, additions[index], identity.Pod, identity.SlurmName)
		}
		return err
	})
	if err != nil {
		return err
	}
	wanted.additions = additions[begun:]
	r.unfinished.keep(scope, wanted)
	return nil
}

// errOnlyThisPod marks an error that concerns one pod and need not concern the next.
var errOnlyThisPod = errors.New("other pods are not affected")

func (r *Reconciler) createOne(ctx context.Context, scope *scope, identity worker.Identity,
	request *plan.Request) error {
	if err := r.checkSlurmNodeName(ctx, scope, identity); err != nil {
		return err
	}
	if err := r.createPVCs(ctx, scope, identity.Pod); err != nil {
		return err
	}
	pod := worker.Pod(scope.set, *scope.template, scope.revision.hash, identity)
	if request != nil {
		desired.UseRequest(pod, request)
	}
	err := r.Window.Do(ctx, func() error { return r.Client.Create(ctx, pod, client.FieldOwner(naming.ManagedBy)) })
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("pod %s exists and is not owned by this NodeSet; delete or rename it (%w)", pod.Name,
			errOnlyThisPod)
	case apierrors.IsInvalid(err):
		return fmt.Errorf("creating pod %s: %w (%w)", pod.Name, err, errOnlyThisPod)
	case err != nil:
		return fmt.Errorf("creating pod %s: %w", pod.Name, err)
	}
	r.expectations.expectCreated(scope.set.UID, pod.UID, r.Clock.Now())
	return nil
}

// checkSlurmNodeName refuses a pod if another pod of the namespace has the same Slurm node: Slurm would take the second
// slurmd for a restart of the first, and terminate its jobs. The cache may not have the pods that another NodeSet has
// just created, so names are remembered too.
func (r *Reconciler) checkSlurmNodeName(ctx context.Context, scope *scope, identity worker.Identity) error {
	name := types.NamespacedName{Namespace: scope.set.Namespace, Name: identity.SlurmName}
	pods := &corev1.PodList{}
	if err := index.PodsBySlurmNode.List(ctx, r.Client, name, pods, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	holder := identity.Pod
	for i := range pods.Items {
		if pods.Items[i].Name != identity.Pod {
			holder = pods.Items[i].Name
		}
	}
	if holder == identity.Pod {
		holder = r.names.take(name, identity.Pod, r.Clock.Now())
	}
	if holder == identity.Pod {
		return nil
	}
	r.names.wait(name, client.ObjectKeyFromObject(scope.set))
	return fmt.Errorf(
		"pod %s is not created: pod %s already has Slurm node %s; give one of the NodeSets another name or "+
			"spec.template.spec.hostname, keep it off that Kubernetes node, or change the node's hostname-override (%w)",
		identity.Pod, holder, identity.SlurmName, errOnlyThisPod)
}
