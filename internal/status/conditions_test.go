package status_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

func TestVerdictsBecomeThreeConditions(t *testing.T) {
	tests := map[string]struct {
		verdict                      status.Verdict
		ready, progressing, degraded metav1.ConditionStatus
	}{
		"well":    {status.Well("fine"), metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionFalse},
		"working": {status.Working("Because", "soon"), metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionFalse},
		"broken":  {status.Broken("Because", "mend it"), metav1.ConditionFalse, metav1.ConditionFalse, metav1.ConditionTrue},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conditions := status.NewConditions(7, nil, metav1.Now())
			conditions.Summarize(test.verdict)
			got := map[string]metav1.ConditionStatus{}
			for _, condition := range conditions.Configuration() {
				got[*condition.Type] = *condition.Status
				if *condition.Reason != test.verdict.Reason || *condition.Message != test.verdict.Message || *condition.ObservedGeneration != 7 {
					t.Errorf("%s says %s, %q, for generation %d", *condition.Type, *condition.Reason, *condition.Message, *condition.ObservedGeneration)
				}
			}
			if got[slinkyv1beta1.ConditionReady] != test.ready || got[slinkyv1beta1.ConditionProgressing] != test.progressing || got[slinkyv1beta1.ConditionDegraded] != test.degraded {
				t.Errorf("conditions are %v", got)
			}
		})
	}
}

func TestTransitionTimeIsOfTheStatusAlone(t *testing.T) {
	before := metav1.NewTime(time.Unix(1_000, 0))
	now := metav1.NewTime(time.Unix(2_000, 500))
	old := []metav1.Condition{
		{Type: "Same", Status: metav1.ConditionTrue, Reason: "Old", LastTransitionTime: before},
		{Type: "Other", Status: metav1.ConditionFalse, LastTransitionTime: before},
	}
	conditions := status.NewConditions(1, old, now)
	conditions.Set("Same", metav1.ConditionTrue, "New", "another message")
	conditions.Set("Other", metav1.ConditionTrue, "New", "%s", strings.Repeat("long ", 1000))
	for _, condition := range conditions.Configuration() {
		want := before
		if *condition.Type == "Other" {
			want = metav1.NewTime(time.Unix(2_000, 0))
		}
		if !condition.LastTransitionTime.Equal(&want) {
			t.Errorf("%s has changed at %s", *condition.Type, condition.LastTransitionTime)
		}
		if len(*condition.Message) > 2048 {
			t.Errorf("the message has %d bytes", len(*condition.Message))
		}
	}
}
