package slurmclient

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/certificate"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// An obstacle is why there is no connection.
type obstacle struct{ reason, message string }

// choose returns the RestApi to use: the one that the Controller names, or else the oldest; nil if there is none. Its
// slurmrestd gets a token with all privileges, and its answers decide which pods are deleted, so a RestApi that is
// created later never replaces it, not even while it is not ready.
func choose(controller *slinkyv1beta1.Controller, restAPIs []slinkyv1beta1.RestApi) *slinkyv1beta1.RestApi {
	if name := controller.Annotations[slinkyv1beta1.AnnotationRestAPI]; name != "" {
		restAPIs = slices.DeleteFunc(slices.Clone(restAPIs),
			func(restAPI slinkyv1beta1.RestApi) bool { return restAPI.Name != name })
	}
	if len(restAPIs) == 0 {
		return nil
	}
	chosen := slices.MinFunc(restAPIs, func(a, b slinkyv1beta1.RestApi) int {
		return cmp.Or(compareDeleted(a, b), a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name))
	})
	return &chosen
}

// compareDeleted sorts those that are being deleted after the others.
func compareDeleted(a, b slinkyv1beta1.RestApi) int {
	switch {
	case a.DeletionTimestamp == nil && b.DeletionTimestamp != nil:
		return -1
	case a.DeletionTimestamp != nil && b.DeletionTimestamp == nil:
		return 1
	}
	return 0
}

// decide returns where to connect to, or why not to connect.
func decide(scope *scope) (endpoint, *obstacle) {
	controller, restAPI := scope.controller, scope.restAPI
	if controller.DeletionTimestamp != nil {
		return endpoint{}, &obstacle{slinkyv1beta1.ReasonConnecting, "the Controller is being deleted"}
	}
	if restAPI == nil {
		return endpoint{}, noRestAPI(controller)
	}
	address, problem := restAddress(restAPI, scope.service)
	if problem != nil {
		return endpoint{}, problem
	}
	if scope.jwtKey == nil {
		return endpoint{}, &obstacle{slinkyv1beta1.ReasonReferenceNotFound,
			"the key that signs tokens for Slurm does not exist yet"}
	}
	server, invalid := certificate.OfRestAPI(restAPI, scope.certificate, scope.now)
	if invalid != nil {
		return endpoint{}, &obstacle{invalid.Reason, invalid.Message}
	}
	found := endpoint{
		url:     serviceURL("https", restAPI, naming.RestAPI(restAPI.Name), restAPI.Spec.Service.Port),
		address: address, server: server, ready: ready(restAPI),
	}
	if controller.Spec.Metrics.Enabled && !controller.Spec.External {
		// Metrics only save requests: without them, slurmrestd is queried more often.
		name, port := naming.Controller(controller.Name), controller.Spec.Service.Port
		if address, problem := verify(controller, "Controller", name, scope.slurmctld, port); problem == nil {
			found.metrics, found.metricsAddress = serviceURL("http", controller, name, port), address
		}
	}
	return found, nil
}

func noRestAPI(controller *slinkyv1beta1.Controller) *obstacle {
	if name := controller.Annotations[slinkyv1beta1.AnnotationRestAPI]; name != "" {
		return &obstacle{slinkyv1beta1.ReasonNoRestAPI, fmt.Sprintf("the annotation %s names RestApi %s, and "+
			"no RestApi of that name has spec.controllerRef.name %s; create it, or remove the annotation",
			slinkyv1beta1.AnnotationRestAPI, name, controller.Name)}
	}
	return &obstacle{slinkyv1beta1.ReasonNoRestAPI, fmt.Sprintf("no RestApi has spec.controllerRef.name %s, "+
		"so the operator has no connection to Slurm; create one", controller.Name)}
}

// serviceURL returns the URL of a Service. Its host is only for the Host header and for messages: it is not resolved.
func serviceURL(scheme string, owner client.Object, name string, port int32) string {
	return fmt.Sprintf("%s://%s.%s.svc:%d", scheme, name, owner.GetNamespace(), port)
}

// restAddress returns the verified address of slurmrestd.
func restAddress(restAPI *slinkyv1beta1.RestApi, service *corev1.Service) (string, *obstacle) {
	return verify(restAPI, "RestApi", naming.RestAPI(restAPI.Name), service, restAPI.Spec.Service.Port)
}

// verify returns the address (host:port) of a Service of an owner, or why it must not be used. The address is the
// cluster IP and not a name, because a name that does not exist in the cluster may exist elsewhere: slurm-restapi.dev
// is also a name in the top-level domain dev.
func verify(owner client.Object, kind, name string, service *corev1.Service, port int32) (string, *obstacle) {
	switch {
	case service == nil:
		return "", &obstacle{slinkyv1beta1.ReasonConnecting,
			fmt.Sprintf("Service %s of %s %s does not exist yet", name, kind, owner.GetName())}
	case !metav1.IsControlledBy(service, owner):
		return "", &obstacle{slinkyv1beta1.ReasonEndpointNotVerified, fmt.Sprintf("Service %s is not controlled by "+
			"%s %s, so the operator sends no token to it; delete it, and the operator creates its own", name, kind,
			owner.GetName())}
	case net.ParseIP(service.Spec.ClusterIP) == nil: // headless, or of type ExternalName
		return "", &obstacle{slinkyv1beta1.ReasonEndpointNotVerified, fmt.Sprintf("Service %s has no cluster IP, so "+
			"the operator cannot verify who gets its token; remove clusterIP and type from spec.service.spec of %s %s, "+
			"then delete the Service", name, kind, owner.GetName())}
	}
	return net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(port))), nil
}

func ready(restAPI *slinkyv1beta1.RestApi) bool {
	return meta.IsStatusConditionTrue(restAPI.Status.Conditions, slinkyv1beta1.ConditionReady)
}
