// Package restapi runs slurmrestd for each RestApi: a Deployment, a Service in front of it, and a ConfigMap with the
// part of the cluster's slurm.conf that slurmrestd needs.
//
// The configuration comes from the ConfigMap that the Controller's slurmctld runs with, so slurmrestd never gets one
// that slurmctld refuses. slurmrestd does not reload its configuration: the pod template has the hash of slurmrestd's
// part, and only a change of that part, which contains no partitions and nodes, replaces the pods.
package restapi

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A Reconciler reconciles RestApis.
type Reconciler struct {
	Client   client.Client
	Children *child.Applier
	Status   *status.Writer
	Clock    clock.PassiveClock
	Images   naming.Images
}

// A scope is the state that one reconcile observes.
type scope struct {
	restAPI *slinkyv1beta1.RestApi
	image   string
	// controller is nil if it does not exist.
	controller *slinkyv1beta1.Controller
	// configuration is the slurm.conf that slurmctld runs with; empty if there is none yet.
	configuration string
	// deployment is nil if there is none yet.
	deployment *appsv1.Deployment
	pods       []corev1.Pod
	now        time.Time
}

// Reconcile reconciles slurmrestd with one RestApi.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	scope, err := r.observe(ctx, request)
	if err != nil || scope == nil {
		return ctrl.Result{}, err
	}
	plan := decide(scope)
	err = r.act(ctx, scope, plan)
	if refusal, ok := child.Refusal(err); ok {
		return retry.After(child.RetryRefusal, r.report(ctx, scope, obstacle(refusal), nil))
	}
	return ctrl.Result{}, errors.Join(err, r.report(ctx, scope, plan, err))
}

func (r *Reconciler) observe(ctx context.Context, request ctrl.Request) (*scope, error) {
	restAPI, err := reference.Object(ctx, r.Client, request.Namespace, request.Name, &slinkyv1beta1.RestApi{})
	if err != nil || restAPI == nil {
		return nil, err // objects that it owns are garbage-collected
	}
	scope := &scope{restAPI: restAPI, image: r.Images.For(naming.Slurmrestd), now: r.Clock.Now()}
	scope.controller, err = reference.Object(ctx, r.Client, restAPI.Namespace, restAPI.Spec.ControllerRef.Name, &slinkyv1beta1.Controller{})
	if err != nil {
		return nil, err
	}
	configuration, err := reference.Object(ctx, r.Client, restAPI.Namespace, naming.Configuration(restAPI.Spec.ControllerRef.Name), &corev1.ConfigMap{})
	if err != nil {
		return nil, err
	}
	if configuration != nil {
		scope.configuration = configuration.Data[slurmconf.FileName]
	}
	scope.deployment, err = reference.Object(ctx, r.Client, restAPI.Namespace, naming.RestAPI(restAPI.Name), &appsv1.Deployment{})
	if err != nil {
		return nil, err
	}
	scope.pods, err = reference.Pods(ctx, r.Client, naming.Slurmrestd, restAPI)
	return scope, err
}

func (r *Reconciler) act(ctx context.Context, scope *scope, plan plan) error {
	if plan.children == nil {
		return nil
	}
	owner, children := scope.restAPI, plan.children
	if err := r.Children.Apply(ctx, owner, children.configMap, &corev1.ConfigMap{}); err != nil {
		return err
	}
	if err := r.Children.Apply(ctx, owner, children.service, &corev1.Service{}); err != nil {
		return err
	}
	deployment := &appsv1.Deployment{}
	if err := r.Children.Apply(ctx, owner, children.deployment, deployment); err != nil {
		return err
	}
	scope.deployment = deployment
	return r.Children.ApplyBudget(ctx, owner, naming.RestAPI(owner.Name), children.budget)
}
