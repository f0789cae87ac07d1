package cluster

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
)

// An agent whose report cannot be authenticated is up, so that its pod can be touched and replaced, but what it says
// does not count.
func TestAgentWithoutTheKeyIsUpAndHasAppliedNothing(t *testing.T) {
	key := bytes.Repeat([]byte{1}, 32)
	says := agent.Report{FilesHash: "h", RunningHash: "h"}
	template := corev1.PodTemplateSpec{}
	podtemplate.AuthenticateReports(&template)
	current, earlier := &corev1.Pod{ObjectMeta: template.ObjectMeta}, &corev1.Pod{}
	tests := map[string]struct {
		pod     *corev1.Pod
		key     []byte
		failure error
		// asked is the key with which the agent is queried; nothing is queried without a key.
		asked            []byte
		answers, applied bool
	}{
		"an agent with the key": {pod: current, key: key, asked: key, answers: true, applied: true},
		"an agent with another key": {
			pod: current, key: key, asked: key, failure: report.ErrNotAuthenticated, answers: true,
		},
		"an agent that does not answer": {
			pod: current, key: key, asked: key, failure: errors.New("connection refused"),
		},
		"an agent while the cluster has no key":  {pod: current, answers: true},
		"an agent of an earlier version":         {pod: earlier, key: key, answers: true, applied: true},
		"an earlier agent that does not answer":  {pod: earlier, key: key, failure: errors.New("connection refused")},
		"an earlier agent in a keyless cluster":  {pod: earlier, answers: true, applied: true},
		"an earlier agent that refuses a report": {pod: earlier, failure: report.ErrNotAuthenticated, answers: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reconciler := &Reconciler{Agent: func(_ context.Context, _ string, key []byte) (agent.Report, error) {
				if !bytes.Equal(key, test.asked) {
					t.Errorf("queried with the key %x", key)
				}
				if test.failure != nil {
					return agent.Report{}, test.failure
				}
				return says, nil
			}}
			state, answers := reconciler.queryAgent(t.Context(), test.pod, test.key)
			if answers != test.answers || (state.RunningHash == "h") != test.applied {
				t.Errorf("answers: %t, report %+v", answers, state)
			}
			if answers && !test.applied && !strings.Contains(state.LastError, "authenticated") {
				t.Errorf("the last error is %q", state.LastError)
			}
		})
	}
}
