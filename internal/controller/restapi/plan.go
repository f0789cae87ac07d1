package restapi

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/certificate"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A plan is the result of a reconcile's decisions.
type plan struct {
	// children are the desired objects; nil to leave them unchanged.
	children *children
	// verdict is the reason if there are no children.
	verdict status.Verdict
	// certificateHash is the hash of the certificate that the pods are to serve.
	certificateHash string
	// certificateExpires is when the served certificate expires; zero if there is none.
	certificateExpires time.Time
	// requeueAfter is when the certificate must be renewed, expires, or may have become valid.
	requeueAfter time.Duration
}

// obstacle returns the plan if nothing can be done.
func obstacle(verdict status.Verdict) plan { return plan{verdict: verdict} }

// decide makes a plan from the configuration that slurmctld runs with. Without one, existing objects are left
// unchanged, because they may still be usable.
func decide(scope *scope) plan {
	controller := scope.restAPI.Spec.ControllerRef.Name
	if scope.controller == nil {
		return obstacle(status.Degraded(slinkyv1beta1.ReasonControllerNotFound,
			"Controller %s, which spec.controllerRef names, does not exist; create it", controller))
	}
	if scope.configuration == "" {
		return obstacle(status.Progressing(slinkyv1beta1.ReasonControllerNotReady,
			"Controller %s has no configuration yet", controller))
	}
	document, err := slurmconf.Parse(scope.configuration)
	if err != nil {
		return obstacle(status.Progressing(slinkyv1beta1.ReasonControllerNotReady,
			"the configuration of Controller %s is damaged: %v", controller, err))
	}
	served, problem := certify(scope)
	if problem != nil { // of a certificate that becomes valid, no event says so
		return plan{verdict: status.Degraded(problem.Reason, "%s", problem.Message), requeueAfter: child.RetryRefusal}
	}
	children, err := build(scope, served, slurmconf.Clients(document))
	if err != nil {
		return obstacle(status.Degraded(slinkyv1beta1.ReasonInvalidSpec, "%v", err))
	}
	secret := scope.certificate
	if served.kept != nil {
		secret = &corev1.Secret{Data: served.kept.Data()}
	}
	return plan{
		children: &children, certificateHash: certificateHash(secret), certificateExpires: served.server.Expires,
		requeueAfter: max(served.due.Sub(scope.now), time.Second),
	}
}

// certificateLifetime is that of a generated certificate.
const certificateLifetime = 365 * 24 * time.Hour

// issued is the certificate that the pods serve.
type issued struct {
	// kept is the content of the operator's own Secret; nil if the spec names another one.
	kept *certificate.Set
	// server is how clients verify it.
	server certificate.Server
	// due is when it must be renewed, or expires if the operator does not renew it.
	due time.Time
}

// certify returns the certificate that the spec names, or the operator's own after the rotation step that is due. If
// the cache is stale, a certificate that was just generated is replaced once more, before any pod serves it.
func certify(scope *scope) (issued, *certificate.Problem) {
	restAPI, secret := scope.restAPI, scope.certificate
	if restAPI.Spec.TLS.CertificateRef != nil || secret != nil && !metav1.IsControlledBy(secret, restAPI) {
		server, problem := certificate.OfRestAPI(restAPI, secret, scope.now)
		return issued{server: server, due: server.Expires}, problem
	}
	var kept certificate.Set
	if secret != nil {
		kept = certificate.ReadSet(secret.Data)
	}
	schedule := certificate.Schedule{Names: dnsNames(scope), Lifetime: certificateLifetime}
	kept, _, err := schedule.Advance(kept, scope.now)
	var server certificate.Server
	if err == nil {
		server, err = kept.Server(naming.RestAPIHost(restAPI), scope.now)
	}
	if err != nil {
		return issued{}, &certificate.Problem{
			Reason: slinkyv1beta1.ReasonCertificateInvalid, Message: "generating a certificate: " + err.Error(),
		}
	}
	return issued{kept: &kept, server: server, due: schedule.Due(kept)}, nil
}

// dnsNames returns the names under which clients find the Service, and those that the spec adds.
func dnsNames(scope *scope) []string {
	service, host := naming.RestAPI(scope.restAPI.Name), naming.RestAPIHost(scope.restAPI)
	names := []string{host, service, service + "." + scope.restAPI.Namespace}
	if scope.clusterDomain != "" {
		names = append(names, host+"."+scope.clusterDomain)
	}
	return append(names, scope.restAPI.Spec.TLS.DNSNames...)
}
