//go:build integration

package charts_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Every value affects the rendered manifests. Many do so only in combination with others, so each must be in one of the
// values files in ci, and is changed there.
func TestEveryValueIsUsed(t *testing.T) {
	for _, chart := range withValues {
		t.Run(chart, func(t *testing.T) {
			used := map[string]bool{}
			for _, set := range sets(t, chart) {
				given := read(t, chart, set)
				before, err := render(t.Context(), chart, given)
				if err != nil {
					t.Fatal(err)
				}
				leaves("", given, func(path, key string, in values) {
					kept := in[key]
					in[key] = another(kept)
					defer func() { in[key] = kept }()
					// The changed value need not be valid.
					if after, err := render(t.Context(), chart, given, "--skip-schema-validation"); err == nil &&
						after == before {
						t.Errorf("%s in %s has no effect", path, set)
					}
					used[path] = true
				})
			}
			leaves("", read(t, chart, "values.yaml"), func(path, _ string, _ values) {
				below := func(other string) bool { return other == path || strings.HasPrefix(other, path+".") }
				if !slices.ContainsFunc(slices.Collect(maps.Keys(used)), below) {
					t.Errorf("%s is in no values file in ci", path)
				}
			})
		})
	}
}

// another returns a different value of the same type.
func another(value any) any {
	switch value := value.(type) {
	case string:
		return value + "x"
	case float64:
		return value + 1
	case bool:
		return !value
	case []any:
		return append([]any{value[0]}, value...)
	case values:
		return values{"another": "value"}
	}
	return "value"
}

func TestInvalidValuesAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ chart, value string }{
		"at the top":                     {"slurm", "nodests.worker.replicas=1"},
		"in an entry":                    {"slurm", "nodesets.worker.replicsa=1"},
		"in the defaults of entries":     {"slurm", "nodesetDefaults.replicsa=1"},
		"deep in a pod template":         {"slurm", "nodesets.worker.template.spec.nodeSelecter.a=b"},
		"in a container":                 {"slurm", "controller.slurmctld.resources.limit.cpu=1"},
		"in a Service":                   {"slurm", "loginsets.login.service.spec.tipe=NodePort"},
		"a number instead of a string":   {"slurm", "clusterName=7"},
		"a string instead of a number":   {"slurm", "nodesets.worker.replicas=many"},
		"an unknown strategy":            {"slurm", "nodesets.worker.updateStrategy.type=Rolling"},
		"a field that the chart sets":    {"slurm", "nodesets.worker.controllerRef.name=other"},
		"a cluster without a Controller": {"slurm", "controller.enabled=false"},
		"in the operator's values":       {"slurm-operator", "operator.replica=2"},
		"in a toleration":                {"slurm-operator", "operator.tolerations[0].efect=NoSchedule"},
		"an unknown kind":                {"slurm-operator", "operator.workersByKind.nodeset=2"},
		"an unknown failure policy":      {"slurm-operator", "webhook.failurePolicy=Retry"},
		"any value of the CRDs":          {"slurm-operator-crds", "keep=false"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t.Context(), test.chart, nil, "--set="+test.value)
			if err == nil || !strings.Contains(err.Error(), "values don't meet the specifications of the schema") {
				t.Errorf("%s: %v", test.value, err)
			}
		})
	}
}
