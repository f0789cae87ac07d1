// Package retry configures the backoff and the logging of the controllers.
package retry

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// maxBackoff is the longest pause between two attempts. controller-runtime's default is a quarter of an hour, so after
// an outage of the API server an object could stay unreconciled for that long.
const maxBackoff = 30 * time.Second

// NewQueue creates the work queue of the controller with a name, for example one that tests observe.
type NewQueue func(name string,
	limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]

// Options returns the options of a controller for a resource type: the backoff doubles with each failure, up to
// maxBackoff, and log lines contain only the controller and the reconciled object as context, because each line itself
// says what was done to which other object. The queue is the default one if newQueue is nil.
func Options(name, kind string, newQueue NewQueue) controller.Options {
	logger := ctrl.Log.WithValues("controller", name)
	return controller.Options{
		NewQueue: newQueue,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond,
			maxBackoff),
		LogConstructor: func(request *reconcile.Request) logr.Logger {
			if request == nil {
				return logger
			}
			return logger.WithValues(kind, request.String())
		},
	}
}

// After returns a result that requeues after a pause, or never if it is zero. After an error, the backoff of Options
// applies.
func After(pause time.Duration, err error) (reconcile.Result, error) {
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: pause}, nil
}
