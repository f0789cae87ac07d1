//go:build slurm

package slurmnet

import (
	"net/http"
	"testing"
)

// TestMetricsAuthUsersDeniesAllTokens shows why the operator does not set MetricsAuthUsers: slurmctld denies every
// token. The images have http_auth/local as the only plugin that authenticates HTTP requests.
func TestMetricsAuthUsersDeniesAllTokens(t *testing.T) {
	cluster := startVersion(t, "26.05", Options{Nodes: 1, ExtraConf: "MetricsAuthUsers=alice,slurm"})
	for _, user := range []string{"alice", "slurm"} {
		for header, token := range map[string]string{
			"Authorization": "Bearer " + cluster.Token(user), "X-SLURM-USER-TOKEN": cluster.Token(user),
		} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				"http://"+cluster.Slurmctld.address+":6817/metrics/jobs", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set(header, token)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
			if response.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s with %s: %s; if tokens are accepted now, scrapes can be authorized by a Token", user, header,
					response.Status)
			}
		}
	}
}
