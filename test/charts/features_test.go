//go:build integration

package charts_test

import (
	"strings"
	"testing"
)

// R41: with one value, operator and webhook serve their metrics on port 8080 over HTTP.
func TestMetricsOverPlainHTTP(t *testing.T) {
	manifests, err := render(t.Context(), "slurm-operator", values{"metrics": values{"secure": false}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--metrics-bind-address=:8080", "--metrics-insecure=true"} {
		if !strings.Contains(manifests, want) {
			t.Errorf("the operator does not get %s", want)
		}
	}
	if strings.Contains(manifests, "--metrics-insecure=false") {
		t.Error("operator or webhook still serve metrics over HTTPS")
	}
}

// R42: the value sssd.config becomes a Secret that login pods use.
func TestChartCreatesSSSDConfiguration(t *testing.T) {
	manifests, err := render(t.Context(), "slurm", values{"sssd": values{"config": "[sssd]\nservices = nss, pam\n"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: Secret", `sssd.conf: "[sssd]\nservices = nss, pam\n"`, "sssdConfRef:"} {
		if !strings.Contains(manifests, want) {
			t.Errorf("the manifests do not contain %s:\n%s", want, manifests)
		}
	}
}
