package status

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

func TestVerdictSetsThreeConditions(t *testing.T) {
	tests := map[string]struct {
		verdict                      Verdict
		ready, progressing, degraded metav1.ConditionStatus
	}{
		"well":    {Ready("fine"), metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionFalse},
		"working": {Progressing("Because", "soon"), metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionFalse},
		"broken":  {Degraded("Because", "fix it"), metav1.ConditionFalse, metav1.ConditionFalse, metav1.ConditionTrue},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conditions := NewConditions(7, nil, metav1.Now())
			conditions.Summarize(test.verdict)
			got := map[string]metav1.ConditionStatus{}
			for _, condition := range conditions.Configuration() {
				got[*condition.Type] = *condition.Status
				message := ""
				if *condition.Type == slinkyv1beta1.ConditionReady {
					message = test.verdict.Message
				}
				if *condition.Reason != test.verdict.Reason || *condition.Message != message ||
					*condition.ObservedGeneration != 7 {
					t.Errorf("%s has reason %s, message %q, generation %d", *condition.Type, *condition.Reason,
						*condition.Message, *condition.ObservedGeneration)
				}
			}
			if got[slinkyv1beta1.ConditionReady] != test.ready ||
				got[slinkyv1beta1.ConditionProgressing] != test.progressing ||
				got[slinkyv1beta1.ConditionDegraded] != test.degraded {
				t.Errorf("got conditions %v", got)
			}
		})
	}
}

func TestTransitionTimeChangesOnlyWithStatus(t *testing.T) {
	before := metav1.NewTime(time.Unix(1_000, 0))
	now := metav1.NewTime(time.Unix(2_000, 500))
	old := []metav1.Condition{
		{Type: "Same", Status: metav1.ConditionTrue, Reason: "Old", LastTransitionTime: before},
		{Type: "Other", Status: metav1.ConditionFalse, LastTransitionTime: before},
	}
	conditions := NewConditions(1, old, now)
	conditions.Set("Same", metav1.ConditionTrue, "New", "another message")
	conditions.Set("Other", metav1.ConditionTrue, "New", "%s", strings.Repeat("long ", 1000))
	for _, condition := range conditions.Configuration() {
		want := before
		if *condition.Type == "Other" {
			want = metav1.NewTime(time.Unix(2_000, 0))
		}
		if !condition.LastTransitionTime.Equal(&want) {
			t.Errorf("%s has the transition time %s", *condition.Type, condition.LastTransitionTime)
		}
		if len(*condition.Message) > 2048 {
			t.Errorf("the message has %d bytes", len(*condition.Message))
		}
	}
}

// Events are recorded for changed conditions, once per message.
func TestRepeatedMessageIsOneEvent(t *testing.T) {
	before := []metav1.Condition{
		{
			Type: slinkyv1beta1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: slinkyv1beta1.ReasonServing,
			Message: "3 of 3",
		},
		{Type: slinkyv1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: slinkyv1beta1.ReasonAsExpected},
		{
			Type: slinkyv1beta1.ConditionSlurmReachable, Status: metav1.ConditionFalse,
			Message: "another controller says this",
		},
		{Type: slinkyv1beta1.ConditionScaledIn, Status: metav1.ConditionTrue, Reason: slinkyv1beta1.ReasonNoExcess},
	}
	conditions := NewConditions(1, before, metav1.Now())
	conditions.Set(slinkyv1beta1.ConditionScaledIn, metav1.ConditionFalse, slinkyv1beta1.ReasonDraining,
		"waiting for gpu-1")
	conditions.Summarize(Progressing(slinkyv1beta1.ReasonDraining, "waiting for gpu-1"))
	conditions.Available(true, "2 of 3")
	changed := conditions.unreported()
	if len(changed) != 1 || changed[0].Type != slinkyv1beta1.ConditionReady {
		t.Errorf("got changed conditions %+v", changed)
	}
	repeated := NewConditions(1, before, metav1.Now())
	repeated.Summarize(Progressing(slinkyv1beta1.ReasonConnecting, "another controller says this"))
	if changed := repeated.unreported(); len(changed) > 0 {
		t.Errorf("got repeated conditions %+v", changed)
	}
}
