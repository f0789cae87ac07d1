package observation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/provisioning"
)

func TestRequest(t *testing.T) {
	is := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "Because", Message: message}
	}
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		answer     plan.Answer
		message    string
	}{
		"a new one is unanswered":       {nil, plan.Unanswered, ""},
		"an accepted one is unanswered": {[]metav1.Condition{is("Accepted", yes, "accepted")}, plan.Unanswered, ""},
		"one without room yet says so": {
			[]metav1.Condition{is("Provisioned", no, "none yet")}, plan.Unanswered, "none yet",
		},
		"one with room is provisioned":      {[]metav1.Condition{is("Provisioned", yes, "found")}, plan.Provisioned, "found"},
		"one without room is refused":       {[]metav1.Condition{is("Failed", yes, "none")}, plan.Refused, "none"},
		"a reason stands for a message":     {[]metav1.Condition{is("Failed", yes, "")}, plan.Refused, "Because"},
		"a condition that is False is none": {[]metav1.Condition{is("Failed", no, "none")}, plan.Unanswered, ""},
		"room that expires is no room": {
			[]metav1.Condition{is("Provisioned", yes, "found"), is("BookingExpired", yes, "expired")}, plan.Expired, "expired",
		},
		"room that is revoked is no room": {
			[]metav1.Condition{is("Provisioned", yes, "found"), is("CapacityRevoked", yes, "gone")}, plan.Refused, "gone",
		},
	} {
		request := &provisioning.Request{
			ObjectMeta: metav1.ObjectMeta{
				Name: "r", CreationTimestamp: metav1.Time{Time: noon}, Annotations: map[string]string{
					"nodeset.slinky.slurm.net/job": "7", "nodeset.slinky.slurm.net/slurm-nodes": "gpu-[0-1]",
				},
			},
			Spec:   provisioning.Spec{ClassName: "c", PodSets: []provisioning.PodSet{{Count: 2}}},
			Status: provisioning.Status{Conditions: test.conditions},
		}
		want := plan.Request{
			Name: "r", Class: "c", Job: 7, SlurmNodes: []string{"gpu-0", "gpu-1"}, Pods: 2, Created: noon,
			Answer: test.answer, Message: test.message,
		}
		if diff := cmp.Diff(want, Request(request)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRequestWithChangedAnnotationsIsForNoSlurmNode(t *testing.T) {
	for _, annotations := range []map[string]string{
		nil, {"nodeset.slinky.slurm.net/job": "x", "nodeset.slinky.slurm.net/slurm-nodes": "gpu-0"},
		{"nodeset.slinky.slurm.net/job": "7", "nodeset.slinky.slurm.net/slurm-nodes": "gpu-["},
	} {
		got := Request(&provisioning.Request{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}})
		if len(got.SlurmNodes) > 0 {
			t.Errorf("with annotations %v, it is for %v", annotations, got.SlurmNodes)
		}
	}
}
