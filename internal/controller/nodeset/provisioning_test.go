package nodeset

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// Each step asks for ProvisioningRequests at a time, while starting the watch returns an error.
func TestRequestsAreWatchedFromWhenTheyAreWanted(t *testing.T) {
	missing := &meta.NoKindMatchError{}
	var starting error
	starts := 0
	watch := requestWatch{start: func() error { starts++; return starting }}
	for _, step := range []struct {
		name      string
		wanted    bool
		after     time.Duration
		starting  error
		available bool
		starts    int
	}{
		{"not wanted", false, 0, nil, false, 0},
		{"without a CRD", true, 0, missing, false, 1},
		{"soon after that", true, time.Second, missing, false, 1},
		{"later", true, crdInterval, missing, false, 2},
		{"with a CRD", true, 2 * crdInterval, nil, true, 3},
		{"again", true, 2 * crdInterval, nil, true, 3},
		{"no longer wanted, to withdraw what there is", false, 2 * crdInterval, nil, true, 3},
	} {
		starting = step.starting
		got, err := watch.available(step.wanted, noon.Add(step.after))
		if err != nil || got != step.available || starts != step.starts {
			t.Errorf("%s: available is %t (%v) after %d starts", step.name, got, err, starts)
		}
	}
	watch.lost(noon)
	if got, err := watch.available(true, noon); got || err != nil {
		t.Errorf("after the CRD was deleted: available is %t (%v)", got, err)
	}
	if got, err := watch.available(true, noon.Add(crdInterval)); !got || err != nil {
		t.Errorf("after it was installed again: available is %t (%v)", got, err)
	}
	failing := requestWatch{start: func() error { return errors.New("broken") }}
	if got, err := failing.available(true, noon); got || err == nil {
		t.Errorf("with an error: available is %t (%v)", got, err)
	}
}

func TestJudgeWithoutProvisioningRequests(t *testing.T) {
	is := elasticNodes()
	is.unprovisioned = true
	next := &plan.Plan{Desired: 2, Updated: 2}
	got := judge(is, next, count(is, next), nil)
	if got.Reason != slinkyv1beta1.ReasonInvalidSpec || !strings.Contains(got.Message, "autoscaling.x-k8s.io/v1") ||
		!strings.Contains(got.Message, "pods are created without them") {
		t.Errorf("got %+v", got)
	}
	if got := pause(is, next, outcome{}, time.Time{}); got != crdInterval {
		t.Errorf("the next reconcile is in %s", got)
	}
}

// The request is deleted soon; its message stays while Slurm nodes are closed because of it.
func TestProvisioningFailureIsShownDuringBackoff(t *testing.T) {
	const failure = "ProvisioningRequest r (no room)"
	is := elasticNodes()
	shown := func(summary plan.Summary) (string, string) {
		next := &plan.Plan{Elastic: summary}
		conditions := status.NewConditions(1, nil, metav1.NewTime(noon))
		capacityUnavailable(is, next, conditions)
		kept := elasticStatus(is, next).ProvisioningFailure
		is.set.Status.Elastic = &slinkyv1beta1.NodeSetElasticStatus{}
		if kept == nil {
			return "", *conditions.Configuration()[0].Message
		}
		is.set.Status.Elastic.ProvisioningFailure = *kept
		return *kept, *conditions.Configuration()[0].Message
	}
	for _, step := range []struct {
		name    string
		summary plan.Summary
		want    string
	}{
		{"before", plan.Summary{}, ""},
		{"when it fails", plan.Summary{Refusal: failure}, failure},
		{"while Slurm nodes are closed", plan.Summary{Unplaced: 2}, failure},
		{"after the backoff", plan.Summary{}, ""},
		{"when pods are not scheduled later", plan.Summary{Unplaced: 2}, ""},
	} {
		got, message := shown(step.summary)
		if got != step.want || strings.Contains(message, failure) != (step.want != "" && step.summary.Unplaced > 0) {
			t.Errorf("%s: shows %q, %q", step.name, got, message)
		}
	}
}
