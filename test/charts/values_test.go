//go:build integration

package charts_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Every value changes what is rendered, so none is there for nothing. Since many count only together with others, each has to be in
// one of the sets of values in ci, and counts there.
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
					// Another value need not be a good one.
					if after, err := render(t.Context(), chart, given, "--skip-schema-validation"); err == nil && after == before {
						t.Errorf("nothing follows from %s in %s", path, set)
					}
					used[path] = true
				})
			}
			leaves("", read(t, chart, "values.yaml"), func(path, _ string, _ values) {
				below := func(other string) bool { return other == path || strings.HasPrefix(other, path+".") }
				if !slices.ContainsFunc(slices.Collect(maps.Keys(used)), below) {
					t.Errorf("%s is in no set of values in ci", path)
				}
			})
		})
	}
}

// another is another value of the same type.
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

func TestATypoIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ chart, value string }{
		"at the top":                         {"slurm", "nodests.worker.replicas=1"},
		"in an entry":                        {"slurm", "nodesets.worker.replicsa=1"},
		"in the defaults of entries":         {"slurm", "nodesetDefaults.replicsa=1"},
		"deep in a pod template":             {"slurm", "nodesets.worker.template.spec.nodeSelecter.a=b"},
		"in a container":                     {"slurm", "controller.slurmctld.resources.limit.cpu=1"},
		"in a Service":                       {"slurm", "loginsets.login.service.spec.tipe=NodePort"},
		"a number for a text":                {"slurm", "clusterName=7"},
		"a text for a number":                {"slurm", "nodesets.worker.replicas=many"},
		"what no strategy is":                {"slurm", "nodesets.worker.updateStrategy.type=Rolling"},
		"what the chart says itself":         {"slurm", "nodesets.worker.controllerRef.name=other"},
		"a cluster without a Controller":     {"slurm", "controller.enabled=false"},
		"in the operator's values":           {"slurm-operator", "operator.replica=2"},
		"in a toleration":                    {"slurm-operator", "operator.tolerations[0].efect=NoSchedule"},
		"a kind that there is not":           {"slurm-operator", "operator.workersByKind.nodeset=2"},
		"what nobody can do about a failure": {"slurm-operator", "webhook.failurePolicy=Retry"},
		"anything about the kinds":           {"slurm-operator-crds", "keep=false"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t.Context(), test.chart, nil, "--set="+test.value)
			if err == nil || !strings.Contains(err.Error(), "values don't meet the specifications of the schema") {
				t.Errorf("%s: %v", test.value, err)
			}
		})
	}
}
