//go:build slurm

package prometheus_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/prometheus"
)

func TestScrapesAndEvaluatesRules(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "paths{path=%q} 7\n", r.URL.Path)
	}))
	t.Cleanup(target.Close)
	server := prometheus.Start(t, prometheus.Options{
		Targets: []prometheus.Target{{Job: "one", URL: target.URL + "/a", Labels: map[string]string{"controller": "slurm"}}},
		Rules:   []byte("groups: [{name: g, rules: [{alert: Seven, expr: paths == 7, labels: {severity: info}}]}]"),
	})
	want := map[string]string{
		"__name__": "ALERTS", "alertname": "Seven", "alertstate": "firing", "severity": "info", "controller": "slurm",
		"job": "one", "path": "/a",
	}
	for deadline := time.Now().Add(5 * time.Minute); ; {
		samples, err := server.Query(t.Context(), "ALERTS")
		if err != nil {
			t.Fatal(err)
		}
		if len(samples) == 1 {
			for label, value := range want {
				if samples[0].Labels[label] != value {
					t.Errorf("%s is %q, want %q", label, samples[0].Labels[label], value)
				}
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the alert does not fire")
		}
		time.Sleep(100 * time.Millisecond)
	}
	now := time.Now()
	series, err := server.Range(t.Context(), "paths", now.Add(-time.Minute), now, time.Second)
	if err != nil || len(series) != 1 || len(series[0].Points) == 0 || series[0].Points[0].Value != 7 ||
		series[0].Labels["path"] != "/a" || now.Sub(series[0].Points[0].At) > time.Minute {
		t.Errorf("over time: %v, %v", series, err)
	}
	if _, err := server.Query(t.Context(), "sum("); err == nil {
		t.Error("an invalid query was accepted")
	}
}
