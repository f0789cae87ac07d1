package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// lostRunTimeout is how long after its deadline the pod of a validation run may still be terminating before the next
// run no longer waits for it: its Kubernetes node is lost.
const lostRunTimeout = 30 * time.Second

// validationName returns the name of a validation run's pod and host. It is unique per candidate, image, configuration
// in force, user and pod; the name of a pod on a lost Kubernetes node is not used again.
func validationName(scope *scope, candidate candidate) string {
	digest, _ := validationDigest(scope) // validationPod returns the error
	identity := fmt.Sprintln(candidate.hash, scope.image, scope.hashInForce(), scope.slurmUser().UID, digest,
		scope.lostRuns())
	return naming.ValidationPod(scope.controller.Name, shortDigest([]byte(identity)))
}

// validationDigest identifies the pod of a validation run: if the spec of the pod changes, the run is started again.
func validationDigest(scope *scope) (string, error) {
	spec, err := validationSpec(scope)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(spec)
	return shortDigest(text), err
}

func shortDigest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:5])
}

// isRun reports whether a pod is the validation run of a candidate.
func isRun(pod *corev1.Pod, scope *scope, candidate candidate) bool {
	if pod == nil || pod.Annotations[annotationHash] != candidate.hash ||
		pod.Annotations[annotationImage] != scope.image || !runsAs(pod, scope.slurmUser()) {
		return false
	}
	digest, err := validationDigest(scope)
	return err == nil && pod.Annotations[annotationRun] == digest
}

// lostRuns returns the UIDs of validation runs whose pods should have terminated long since.
func (s *scope) lostRuns() (lost []string) {
	for i := range s.endingRuns {
		if pod := &s.endingRuns[i]; s.now.Sub(pod.DeletionTimestamp.Time) >= lostRunTimeout {
			lost = append(lost, string(pod.UID))
		}
	}
	slices.Sort(lost)
	return lost
}
