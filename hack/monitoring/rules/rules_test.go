package rules_test

import (
	"bytes"
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

	"github.com/slurm-operator/slurm-operator/hack/monitoring/catalog"
	"github.com/slurm-operator/slurm-operator/hack/monitoring/rules"
)

const root = "../../.."

// known returns the metrics that rules and dashboards may use.
func known(t *testing.T) catalog.Catalog {
	t.Helper()
	metrics, err := catalog.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return metrics
}

func TestRulesUseExistingMetrics(t *testing.T) {
	metrics := known(t)
	for _, recording := range rules.Recordings {
		if _, err := metrics.Check(recording.Expr); err != nil {
			t.Errorf("%s: %v", recording.Name, err)
		}
	}
	for _, alert := range rules.Alerts() {
		if _, err := metrics.Check(alert.Expr); err != nil {
			t.Errorf("%s: %v", alert.Name, err)
		}
	}
}

// label matches a label in an annotation.
var label = regexp.MustCompile(`\$labels\.([a-z_]+)`)

func TestAlertsNameTheirObject(t *testing.T) {
	names := map[string]bool{}
	for _, alert := range rules.Alerts() {
		switch {
		case names[alert.Name]:
			t.Errorf("there are two alerts %s", alert.Name)
		case alert.For == "" || alert.Severity == "":
			t.Errorf("%s has no duration or no severity", alert.Name)
		case strings.HasSuffix(alert.Summary, ".") || !strings.HasSuffix(alert.Description, "."):
			t.Errorf("%s: a summary is a title, a description consists of sentences", alert.Name)
		}
		names[alert.Name] = true
		used := map[string]bool{}
		for _, match := range label.FindAllStringSubmatch(alert.Summary, -1) {
			used[match[1]] = true
		}
		for _, match := range label.FindAllStringSubmatch(alert.Summary+alert.Description, -1) {
			if !slices.Contains(alert.Labels, match[1]) {
				t.Errorf("%s has no label %s", alert.Name, match[1])
			}
		}
		for _, name := range alert.Labels {
			if !used[name] && name != "reason" && name != "cause" {
				t.Errorf("the summary of %s does not name the label %s", alert.Name, name)
			}
		}
		if alert.Runbook == "" && !slices.Contains(alert.Labels, "reason") {
			t.Errorf("%s has neither a runbook nor a reason", alert.Name)
		}
	}
}

// TestRunbooksAndAlertsReferToEachOther checks that the page of an alert exists and names the alert, and that pages
// name no other alerts. The pages of reasons are complete: see api/v1beta1.
func TestRunbooksAndAlertsReferToEachOther(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "runbooks", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string][]string{} // the pages that name an alert
	for _, path := range pages {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page := strings.TrimSuffix(filepath.Base(path), ".md")
		for line := range strings.Lines(string(content)) {
			if !strings.HasPrefix(line, "- **Alert") {
				continue
			}
			for _, match := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(line, -1) {
				named[match[1]] = append(named[match[1]], page)
			}
		}
	}
	for _, alert := range rules.Alerts() {
		if alert.Runbook != "" && !slices.Contains(named[alert.Name], alert.Runbook) {
			t.Errorf("the runbook %s does not name the alert %s", alert.Runbook, alert.Name)
		}
		if alert.Runbook == "" && len(named[alert.Name]) == 0 {
			t.Errorf("no runbook names the alert %s", alert.Name)
		}
		delete(named, alert.Name)
	}
	for name, pages := range named {
		t.Errorf("there is no alert %s, which the runbooks %v name", name, pages)
	}
}

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

func TestRulesFileIsCurrent(t *testing.T) {
	want, err := rules.File()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "charts", "slurm-operator", "files", "monitoring", "rules.yaml"))
	if err != nil || !bytes.Equal(want, got) {
		t.Errorf("the rules file is not current, run make generate: %v", err)
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
