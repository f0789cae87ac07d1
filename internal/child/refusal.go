package child

import (
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// RetryRefusal is when to try again after a refusal: nothing tells when what was in the way has gone.
const RetryRefusal = time.Minute

// Refusal is the verdict on an error of Apply that somebody has to mend: the object belongs to somebody else, or Kubernetes
// does not take what the spec made of it. It returns false for errors that pass by themselves.
func Refusal(err error) (status.Verdict, bool) {
	if foreign, ok := errors.AsType[*ForeignError](err); ok {
		return status.Broken(slinkyv1beta1.ReasonInvalidSpec, "%v", foreign), true
	}
	if apierrors.IsInvalid(err) {
		return status.Broken(slinkyv1beta1.ReasonInvalidSpec, "Kubernetes refuses what the spec asks for; correct the spec: %v", err), true
	}
	if apierrors.IsForbidden(err) {
		if remedy := quotaRemedy(err.Error()); remedy != "" {
			return status.Broken(slinkyv1beta1.ReasonQuotaExceeded, "%v; %s", err, remedy), true
		}
	}
	return status.Verdict{}, false
}

// quotaRemedy says what to do when a ResourceQuota or a LimitRange refuses a pod; it is empty when the message is of neither. The API server
// names the quota and the amounts, or the limit.
func quotaRemedy(message string) string {
	switch {
	case strings.Contains(message, "exceeded quota: "):
		return "raise that ResourceQuota, lower the requests and limits in the spec, or delete what uses it up"
	case strings.Contains(message, "failed quota: "):
		return "the ResourceQuota wants requests and limits for every container: set the resources of the containers that it names in the spec"
	case strings.Contains(message, "usage per Container is"), strings.Contains(message, "usage per Pod is"), strings.Contains(message, "limit to request ratio per"):
		return "a LimitRange of the namespace wants other requests and limits: set the resources of the container in the spec, or change the LimitRange"
	}
	return ""
}
