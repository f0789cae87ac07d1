package child

import (
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// RetryRefusal is when to retry after a refusal: no watch event reports that its cause is resolved.
const RetryRefusal = time.Minute

// Refusal returns the verdict for an error of Apply that the user must fix: the object has another owner, or Kubernetes
// rejects what was built from the spec. It returns false for errors that a retry may fix.
func Refusal(err error) (status.Verdict, bool) {
	if foreign, ok := errors.AsType[*ForeignError](err); ok {
		return status.Degraded(slinkyv1beta1.ReasonInvalidSpec, "%v", foreign), true
	}
	if takeOver, ok := errors.AsType[*TakeOverError](err); ok && takeOver.Allowed {
		return status.Progressing(slinkyv1beta1.ReasonTakingOver, "%v", takeOver), true
	} else if ok {
		return status.Degraded(slinkyv1beta1.ReasonNotTakenOver, "%v", takeOver), true
	}
	if apierrors.IsInvalid(err) {
		return status.Degraded(slinkyv1beta1.ReasonInvalidSpec,
			"Kubernetes refuses what the spec asks for; correct the spec: %v", err), true
	}
	if apierrors.IsForbidden(err) {
		if remedy := quotaRemedy(err.Error()); remedy != "" {
			return status.Degraded(slinkyv1beta1.ReasonQuotaExceeded, "%v; %s", err, remedy), true
		}
		if remedy := securityRemedy(err.Error()); remedy != "" {
			return status.Degraded(slinkyv1beta1.ReasonPodSecurity, "%v; %s", err, remedy), true
		}
	}
	return status.Verdict{}, false
}

// securityRemedy returns the remedy if the Pod Security level of the namespace rejects a pod, and empty for other
// messages. The API server names the level, and what it forbids.
func securityRemedy(message string) string {
	const label = "label the namespace with pod-security.kubernetes.io/enforce="
	switch {
	case !strings.Contains(message, "violates PodSecurity"):
		return ""
	case strings.Contains(message, `container "slurmd" must not include`), strings.Contains(message,
		`container "slurmd" must not set securityContext.privileged`):
		return "slurmd needs this to confine jobs: " + label + "privileged, run the NodeSet in another namespace, or let " +
			"jobs run unconfined with spec.jobConfinement: None of the Controller"
	default:
		return label + "another level, or remove from the spec what it forbids"
	}
}

// quotaRemedy returns the remedy if a ResourceQuota or a LimitRange rejects a pod, and empty for other messages. The
// API server names the quota and the amounts, or the limit.
func quotaRemedy(message string) string {
	switch {
	case strings.Contains(message, "exceeded quota: "):
		return "raise that ResourceQuota, lower the requests and limits in the spec, or delete what uses it up"
	case strings.Contains(message, "failed quota: "):
		return "the ResourceQuota wants requests and limits for every container: set the resources of the " +
			"containers that it names in the spec"
	case strings.Contains(message, "usage per Container is"), strings.Contains(message,
		"usage per Pod is"), strings.Contains(message, "limit to request ratio per"):
		return "a LimitRange of the namespace wants other requests and limits: set the resources of the container " +
			"in the spec, or change the LimitRange"
	}
	return ""
}
