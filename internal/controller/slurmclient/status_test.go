package slurmclient

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

func TestReachableCondition(t *testing.T) {
	failed := func(kind slurm.Kind) slurm.Status {
		return slurm.Status{Err: &slurm.Error{Kind: kind, Op: "ping", Err: errors.New("no")}}
	}
	for name, test := range map[string]struct {
		state  slurm.Status
		is     metav1.ConditionStatus
		reason string
		says   string
	}{
		"answers": {
			slurm.Status{Reachable: true}, metav1.ConditionTrue, slinkyv1beta1.ReasonConnected, "slurmctld answers",
		},
		"has a long queue": {
			slurm.Status{Reachable: true, Queue: slurm.QueueReport{Took: 9 * time.Second}}, metav1.ConditionTrue,
			slinkyv1beta1.ReasonConnected, "set spec.metrics.enabled",
		},
		"was not queried yet": {
			slurm.Status{}, metav1.ConditionUnknown, slinkyv1beta1.ReasonConnecting, "first answer",
		},
		"is down": {
			failed(slurm.ControllerDown), metav1.ConditionFalse, slinkyv1beta1.ReasonSlurmctldDown, "no",
		},
		"refuses the token": {
			failed(slurm.Unauthorized), metav1.ConditionFalse, slinkyv1beta1.ReasonAuthenticationFailed,
			"spec.jwtKeyRef",
		},
		"is too old": {
			failed(slurm.Unsupported), metav1.ConditionFalse, slinkyv1beta1.ReasonUnsupportedVersion, "24.11 or later",
		},
		"is unreachable": {
			failed(slurm.Unreachable), metav1.ConditionFalse, slinkyv1beta1.ReasonRestAPIUnreachable, "no",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if is, reason, message := answer(test.state); is != test.is || reason != test.reason ||
				!strings.Contains(message, test.says) {
				t.Errorf("got %s, %s: %s", is, reason, message)
			}
		})
	}
}
