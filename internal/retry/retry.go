// Package retry says how soon a controller tries again what has failed.
package retry

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// longest is the longest pause between two attempts. controller-runtime's own is a quarter of an hour, so that an object which failed
// all through an outage of the API server would stay as it is for as long again.
const longest = 30 * time.Second

// Options make a controller try again after a pause that doubles with each failure, up to longest.
func Options() controller.Options {
	return controller.Options{
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, longest),
	}
}

// After makes a controller try again after a pause, zero for never, or when there was an error, as soon as Options say.
func After(pause time.Duration, err error) (reconcile.Result, error) {
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: pause}, nil
}
