package metric_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/metric"
)

// TestDefinitions checks what Prometheus' naming conventions require, and that no label can have as many values as
// there are Slurm nodes, jobs or users.
func TestDefinitions(t *testing.T) {
	unbounded := []string{"node", "pod", "job", "job_id", "user", "account", "message"}
	seen := map[string]bool{}
	for _, group := range metric.Groups() {
		for _, definition := range group.Metrics {
			switch {
			case seen[definition.Name]:
				t.Errorf("%s is defined twice", definition.Name)
			case !strings.HasPrefix(definition.Name, "slurm_operator_"):
				t.Errorf("%s lacks the prefix", definition.Name)
			case strings.HasSuffix(definition.Name, "_total") != (definition.Type == metric.Counter):
				t.Errorf("%s is a %s", definition.Name, definition.Type)
			case definition.Help == "" || strings.HasSuffix(definition.Help, "."):
				t.Errorf("%s has the help %q", definition.Name, definition.Help)
			case (definition.Buckets != nil) != (definition.Type == metric.Histogram):
				t.Errorf("%s has the buckets %v", definition.Name, definition.Buckets)
			}
			seen[definition.Name] = true
			for _, label := range definition.Labels {
				if slices.Contains(unbounded, label) {
					t.Errorf("%s has the label %s", definition.Name, label)
				}
			}
		}
	}
}
