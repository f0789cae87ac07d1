package retry

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestPausesDoubleUpToTheLongest(t *testing.T) {
	limiter, object := Options("nodeset", "NodeSet").RateLimiter, reconcile.Request{}
	last := limiter.When(object)
	for range 100 {
		pause := limiter.When(object)
		if want := min(2*last, longest); pause != want {
			t.Fatalf("after a pause of %s comes one of %s, want %s", last, pause, want)
		}
		last = pause
	}
	if last != longest {
		t.Errorf("the longest pause is %s, want %s", last, longest)
	}
}
