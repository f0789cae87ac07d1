package retry

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestBackoffDoublesUpToMaximum(t *testing.T) {
	limiter, object := Options("nodeset", "NodeSet", nil).RateLimiter, reconcile.Request{}
	last := limiter.When(object)
	for range 100 {
		pause := limiter.When(object)
		if want := min(2*last, maxBackoff); pause != want {
			t.Fatalf("after a backoff of %s got %s, want %s", last, pause, want)
		}
		last = pause
	}
	if last != maxBackoff {
		t.Errorf("the last backoff is %s, want %s", last, maxBackoff)
	}
}
