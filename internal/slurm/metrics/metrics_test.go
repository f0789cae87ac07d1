package metrics_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/metrics"
)

func TestRequests(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	requests, err := metrics.NewRequests(registry)
	if err != nil {
		t.Fatal(err)
	}
	one, other := slurm.Key{Namespace: "a", Name: "one"}, slurm.Key{Namespace: "a", Name: "other"}
	requests.For(one).ObserveRequest(slurm.Observation{
		Call: "nodes", Result: "ok", Duration: time.Second, Received: 1000,
	})
	requests.For(other).ObserveRequest(slurm.Observation{Call: "nodes", Result: "timeout", Duration: time.Second})
	if count, err := testutil.GatherAndCount(registry); err != nil || count != 6 {
		t.Errorf("there are %d series: %v", count, err)
	}
	requests.Forget(one)
	if count, err := testutil.GatherAndCount(registry); err != nil || count != 3 {
		t.Errorf("there are %d series after a cluster was forgotten: %v", count, err)
	}
	if _, err := metrics.NewRequests(registry); err == nil {
		t.Error("the metrics were registered twice")
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) != 0 {
		t.Errorf("problems with the metrics: %v, %v", problems, err)
	}
}
