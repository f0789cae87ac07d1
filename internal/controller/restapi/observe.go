package restapi

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// A scope is the state that one reconcile observes.
type scope struct {
	restAPI *slinkyv1beta1.RestApi
	// image is slurmrestd's, and helper is the operator's own.
	image, helper string
	// clusterDomain is the DNS domain of the Kubernetes cluster; it may be empty.
	clusterDomain string
	// controller is nil if it does not exist.
	controller *slinkyv1beta1.Controller
	// configuration is the slurm.conf that slurmctld runs with; empty if there is none yet.
	configuration string
	// certificate is the Secret with the certificate that the pods serve; nil if it does not exist.
	certificate *corev1.Secret
	// deployment is nil if there is none yet.
	deployment *appsv1.Deployment
	pods       []corev1.Pod
	now        time.Time
}

func (r *Reconciler) observe(ctx context.Context, request ctrl.Request) (*scope, error) {
	restAPI, err := reference.Object(ctx, r.Client, request.Namespace, request.Name, &slinkyv1beta1.RestApi{})
	if err != nil || restAPI == nil {
		return nil, err // objects that it owns are garbage-collected
	}
	scope := &scope{
		restAPI: restAPI, image: r.Images.For(naming.Slurmrestd), helper: r.Images.Operator,
		clusterDomain: r.ClusterDomain, now: r.Clock.Now(),
	}
	scope.controller, err = reference.Object(ctx, r.Client, restAPI.Namespace, restAPI.Spec.ControllerRef.Name,
		&slinkyv1beta1.Controller{})
	if err != nil {
		return nil, err
	}
	configuration, err := reference.Object(ctx, r.Client, restAPI.Namespace,
		naming.Configuration(restAPI.Spec.ControllerRef.Name), &corev1.ConfigMap{})
	if err != nil {
		return nil, err
	}
	if configuration != nil {
		scope.configuration = configuration.Data[slurmconf.FileName]
	}
	scope.certificate, err = reference.Object(ctx, r.Client, restAPI.Namespace, naming.RestAPICertificate(restAPI),
		&corev1.Secret{})
	if err != nil {
		return nil, err
	}
	scope.deployment, err = reference.Object(ctx, r.Client, restAPI.Namespace, naming.RestAPI(restAPI.Name),
		&appsv1.Deployment{})
	if err != nil {
		return nil, err
	}
	scope.pods, err = reference.Pods(ctx, r.Client, naming.Slurmrestd, restAPI)
	return scope, err
}
