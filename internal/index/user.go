package index

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// UserChanged passes updates of a Controller's user: it becomes known when the operator runs its slurmctld.
var UserChanged = predicate.Funcs{
	UpdateFunc: func(update event.UpdateEvent) bool {
		before, ok := update.ObjectOld.(*slinkyv1beta1.Controller)
		after, same := update.ObjectNew.(*slinkyv1beta1.Controller)
		return ok && same && !equality.Semantic.DeepEqual(before.Status.SlurmUser, after.Status.SlurmUser)
	},
}
