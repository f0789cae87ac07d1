package certificate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// A Problem is why slurmrestd cannot be verified: the reason of a condition, and its message.
type Problem struct{ Reason, Message string }

// OfRestAPI returns how clients verify the slurmrestd of a RestApi, from the Secret with its certificate; the Secret is
// nil if it does not exist. A Secret that the operator did not make for this RestApi counts only if the spec names it.
func OfRestAPI(restAPI *slinkyv1beta1.RestApi, secret *corev1.Secret, now time.Time) (Server, *Problem) {
	name, host := naming.RestAPICertificate(restAPI), naming.RestAPIHost(restAPI)
	given := restAPI.Spec.TLS.CertificateRef != nil
	switch {
	case secret == nil && given:
		return Server{}, &Problem{slinkyv1beta1.ReasonReferenceNotFound, fmt.Sprintf(
			"Secret %s, which spec.tls.certificateRef names, does not exist; create it", name)}
	case secret == nil:
		return Server{}, &Problem{slinkyv1beta1.ReasonConnecting, fmt.Sprintf(
			"Secret %s with slurmrestd's certificate does not exist yet", name)}
	case given:
		server, err := Given(secret.Data, host, now)
		if err != nil {
			return Server{}, &Problem{slinkyv1beta1.ReasonCertificateInvalid, fmt.Sprintf("the certificate in Secret "+
				"%s, which spec.tls.certificateRef names, cannot be used: %v; correct the Secret, or remove "+
				"certificateRef", name, err)}
		}
		return server, nil
	case !metav1.IsControlledBy(secret, restAPI):
		return Server{}, &Problem{slinkyv1beta1.ReasonCertificateInvalid, fmt.Sprintf("Secret %s exists and is not owned "+
			"by RestApi %s; delete it, or name it in spec.tls.certificateRef", name, restAPI.Name)}
	}
	server, err := ReadSet(secret.Data).Server(host, now)
	if err != nil {
		return Server{}, &Problem{slinkyv1beta1.ReasonCertificateInvalid, fmt.Sprintf(
			"the certificate in Secret %s cannot be used, and the operator replaces it: %v", name, err)}
	}
	return server, nil
}
