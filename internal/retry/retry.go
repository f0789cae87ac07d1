// Package retry says how soon a controller tries again what has failed, and how it logs.
package retry

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// longest is the longest pause between two attempts. controller-runtime's own is a quarter of an hour, so that an object which failed
// all through an outage of the API server would stay as it is for as long again.
const longest = 30 * time.Second

// Options make a controller of a resource type try again after a pause that doubles with each failure, up to longest. Its lines in the log
// name it and the object that it reconciles, and nothing else: the line says what was done to which other object.
func Options(name, kind string) controller.Options {
	logger := ctrl.Log.WithValues("controller", name)
	return controller.Options{
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, longest),
		LogConstructor: func(request *reconcile.Request) logr.Logger {
			if request == nil {
				return logger
			}
			return logger.WithValues(kind, request.String())
		},
	}
}

// After makes a controller try again after a pause, zero for never, or when there was an error, as soon as Options say.
func After(pause time.Duration, err error) (reconcile.Result, error) {
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: pause}, nil
}
