package child

import (
	"errors"
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
	return status.Verdict{}, false
}
