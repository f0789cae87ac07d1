//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// An elastic NodeSet becomes fixed, and elastic again, while a job of its first node runs and others come and go.
func (e *elasticSet) switchesUnderJobs(t *testing.T) {
	var elastic map[string]any
	out := e.namespace.MustRun(t, "get", "nodeset/gpu", "--output=jsonpath={.spec.elastic}")
	if err := json.Unmarshal([]byte(out), &elastic); err != nil {
		t.Fatal(err)
	}
	// One node waits for the long job, and the others are replaced meanwhile.
	e.patch(t, "nodeset/gpu", map[string]any{"updateStrategy": map[string]any{
		"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": 2},
	}})
	stream := e.submitJobs(t, "switch", "gpu")
	for _, change := range []struct {
		to         string
		spec       map[string]any
		before, is string // states in scontrol
	}{
		{"fixed", map[string]any{"elastic": nil, "replicas": e.nodes}, "CLOUD", "DYNAMIC_NORM"},
		{"elastic", map[string]any{"elastic": elastic, "replicas": nil}, "DYNAMIC_NORM", "CLOUD"},
	} {
		job := e.startElasticJob(t, "--nodelist=gpu-0")
		started := time.Now()
		e.patch(t, "nodeset/gpu", change.spec)
		for ordinal := 1; ordinal < e.nodes; ordinal++ {
			e.nodeShows(t, fmt.Sprintf("gpu-%d", ordinal), change.is)
		}
		t.Logf("%s: all nodes without the long job are %s after %.1f s", e.version, change.to, time.Since(started).Seconds())
		e.nodeShows(t, "gpu-0", change.before)
		e.finishJob(t, job) // it has not been restarted
		e.nodeShows(t, "gpu-0", change.is)
	}
	stream.stop(t)
	stream.checkAllCompleted(t)
	e.allPoweredDown(t)
}

// nodeShows waits until scontrol shows a state of a node.
func (e *elasticSet) nodeShows(t *testing.T, node, state string) {
	t.Helper()
	e.namespace.Eventually(t, 5*time.Minute, node+" to be "+state, func(ctx context.Context) error {
		out, err := e.login(ctx, "scontrol", "show", "node", node)
		if err == nil && !strings.Contains(out, state) {
			err = fmt.Errorf("scontrol shows %q", out)
		}
		return err
	})
}
