package operator

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// Release removes the finalizers of the NodeSets in the given namespaces, or in all. It runs when the operator is
// uninstalled: without the operator they would never be removed, and neither a NodeSet nor its namespace could be
// deleted.
//
// A NodeSet that is being deleted while its cluster still runs may be waiting for jobs, which would be killed without
// the finalizer. It keeps its finalizer, and this is logged.
func Release(ctx context.Context, config *rest.Config, namespaces []string, log io.Writer) error {
	direct, err := client.New(config, client.Options{Scheme: Scheme()})
	if err != nil {
		return err
	}
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var errs []error
	for _, namespace := range namespaces {
		sets := &slinkyv1beta1.NodeSetList{}
		if err := direct.List(ctx, sets, client.InNamespace(namespace)); err != nil && !meta.IsNoMatchError(err) {
			errs = append(errs, fmt.Errorf("listing NodeSets: %w", err))
		}
		for i := range sets.Items {
			errs = append(errs, release(ctx, direct, &sets.Items[i], log))
		}
	}
	return errors.Join(errs...)
}

func release(ctx context.Context, direct client.Client, set *slinkyv1beta1.NodeSet, log io.Writer) error {
	key := client.ObjectKeyFromObject(set)
	if !set.DeletionTimestamp.IsZero() {
		controller := client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.ControllerRef.Name}
		err := direct.Get(ctx, controller, &slinkyv1beta1.Controller{})
		if err == nil {
			fmt.Fprintf(log, "NodeSet %s is being deleted and may wait for jobs: it stays until the operator is back\n",
				key)
			return nil
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("looking for the Controller of NodeSet %s: %w", key, err)
		}
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := direct.Get(ctx, key, set); err != nil {
			return err
		}
		before := set.DeepCopy()
		if !controllerutil.RemoveFinalizer(set, slinkyv1beta1.FinalizerDrain) {
			return nil
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		return direct.Patch(ctx, set, patch, client.FieldOwner(naming.ManagedBy))
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("taking the finalizer off NodeSet %s: %w", key, err)
	}
	fmt.Fprintf(log, "NodeSet %s may be deleted without the operator\n", key)
	return nil
}
