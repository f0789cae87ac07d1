//go:build slurm

package rules_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/slurm-operator/slurm-operator/hack/monitoring/rules"
)

// A unitTest is a test in promtool's format.
type unitTest struct {
	Interval    string       `json:"interval"`
	InputSeries []series     `json:"input_series"`
	Expressions []expression `json:"promql_expr_test"`
}

type series struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

type expression struct {
	Expr    string   `json:"expr"`
	At      string   `json:"eval_time"`
	Samples []sample `json:"exp_samples"`
}

type sample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

func newTest(input rules.Case, query string, expected ...sample) unitTest {
	test := unitTest{Interval: fmt.Sprintf("%dm", max(input.Step, 1)), Expressions: []expression{{
		Expr: query, At: fmt.Sprintf("%dm", input.Minute), Samples: expected,
	}}}
	for _, name := range slices.Sorted(maps.Keys(input.Series)) {
		test.InputSeries = append(test.InputSeries, series{name, input.Series[name]})
	}
	return test
}

// firing returns the sample of an alert that fires.
func firing(alert rules.Alert) sample {
	labels := []string{
		`alertname="` + alert.Name + `"`, `alertstate="firing"`, `severity="` + string(alert.Severity) + `"`,
	}
	for i, name := range alert.Labels {
		labels = append(labels, fmt.Sprintf("%s=%q", name, alert.Fires.Labels[i]))
	}
	if len(alert.Labels) > 0 && strings.HasSuffix(alert.Labels[0], "_namespace") {
		labels = append(labels, fmt.Sprintf("namespace=%q", alert.Fires.Labels[0]))
	}
	return sample{"ALERTS{" + strings.Join(labels, ",") + "}", 1}
}

// TestAlertsFire runs promtool's unit tests: every alert fires for one set of series, with the labels that say of what,
// and does not for another.
func TestAlertsFire(t *testing.T) {
	directory := t.TempDir()
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := rules.File()
	if err != nil {
		t.Fatal(err)
	}
	write("rules.yaml", file)
	promtool(t, directory, "check", "rules", "rules.yaml")
	const wrapping = `slurm_node_cpus_alloc{controller_namespace="a",controller="s",node=`
	// Tests by the interval of evaluation, which applies to a whole file.
	tests := map[string][]unitTest{}
	add := func(test unitTest) { tests[test.Interval] = append(tests[test.Interval], test) }
	add(newTest(
		rules.Case{Series: map[string]string{
			wrapping + `"x",pod="0"}`: "60000x5", wrapping + `"y",pod="0"}`: "60000x5", wrapping + `"y",pod="1"}`: "60000x5",
		}, Minute: 2}, "controller:slurm_node_cpus_alloc:sum",
		sample{`controller:slurm_node_cpus_alloc:sum{controller_namespace="a",controller="s"}`, 120000},
	))
	for _, alert := range rules.Alerts() {
		query := `ALERTS{alertname="` + alert.Name + `",alertstate="firing"}`
		add(newTest(alert.Fires, query, firing(alert)))
		add(newTest(alert.Quiet, query))
	}
	for interval, list := range tests {
		content, err := yaml.Marshal(map[string]any{
			"rule_files": []string{"rules.yaml"}, "evaluation_interval": interval, "tests": list,
		})
		if err != nil {
			t.Fatal(err)
		}
		write("tests-"+interval+".yaml", content)
		promtool(t, directory, "test", "rules", "tests-"+interval+".yaml")
	}
}

// promtool runs the promtool that make deps unpacks.
func promtool(t *testing.T, directory string, args ...string) {
	t.Helper()
	path := "promtool"
	if cache, err := os.UserHomeDir(); err == nil {
		base := filepath.Join(cache, ".cache", "slurm-operator")
		if own := os.Getenv("SLURM_OPERATOR_CACHE"); own != "" {
			base = own
		}
		path = filepath.Join(base, "prometheus", "usr", "bin", "promtool")
	}
	command := exec.CommandContext(t.Context(), path, args...)
	command.Dir = directory
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("promtool %s: %v; if it does not exist, run make deps\n%s", strings.Join(args, " "), err, output)
	}
}

// discovery matches the service discovery of the example, which Debian's Prometheus is built without.
var discovery = regexp.MustCompile(`kubernetes_sd_configs: .*`)

// TestScrapeConfigurationInTheDocs checks the example for a Prometheus without its operator, except its discovery.
func TestScrapeConfigurationInTheDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```yaml\nscrape_configs:")
	example, _, ends := strings.Cut(rest, "```")
	if !found || !ends {
		t.Fatal("there is no example")
	}
	directory := t.TempDir()
	path := filepath.Join(directory, "prometheus.yaml")
	config := "scrape_configs:" + discovery.ReplaceAllString(example, "static_configs: []")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, directory, "check", "config", "--syntax-only", path)
}
