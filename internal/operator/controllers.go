package operator

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/controller/token"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// addControllers adds all controllers to the manager.
func addControllers(ctx context.Context, manager ctrl.Manager, _ Options) error {
	if err := index.Add(ctx, manager.GetFieldIndexer()); err != nil {
		return err
	}
	children := child.NewApplier(manager.GetClient())
	writer := func(controller string) *status.Writer {
		// Each controller owns what it writes, so that two of them may write to one object.
		owner := client.FieldOwner(naming.ManagedBy + "/" + controller)
		return status.NewWriter(manager.GetClient(), manager.GetEventRecorder(naming.ManagedBy), owner)
	}
	for name, controller := range map[string]interface{ SetupWithManager(ctrl.Manager) error }{
		token.Name: &token.Reconciler{Client: manager.GetClient(), Children: children, Status: writer(token.Name), Clock: clock.RealClock{}},
	} {
		if err := controller.SetupWithManager(manager); err != nil {
			return fmt.Errorf("setting up the controller %s: %w", name, err)
		}
	}
	return nil
}
