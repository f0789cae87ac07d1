// Package catalog knows which metrics exist, with their labels, and checks queries against them: the operator's from
// its reference, slurmctld's from the list that a test reads from a real one, and those of controller-runtime.
package catalog

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// A Catalog has the labels of each metric.
type Catalog map[string][]string

// targetLabels are those that a scrape adds to each series, and recording and alerting rules to theirs.
var targetLabels = []string{"job", "instance", "namespace", "service", "pod", "container", "endpoint"}

// slurmLabels are those that the ServiceMonitor adds to slurmctld's series.
var slurmLabels = []string{"controller_namespace", "controller"}

// libraries are metrics of the libraries in the operator.
var libraries = Catalog{
	"controller_runtime_max_concurrent_reconciles": {"controller"},
	"controller_runtime_reconcile_total":           {"controller", "result"},
	"controller_runtime_reconcile_errors_total":    {"controller"},
	"controller_runtime_reconcile_time_seconds":    {"controller", "le"},
	"workqueue_depth":                              {"controller", "name", "priority"},
	"leader_election_master_status":                {"name"},
	"rest_client_requests_total":                   {"code", "host", "method"},
	"process_cpu_seconds_total":                    nil,
	"process_resident_memory_bytes":                nil,
	"go_goroutines":                                nil,
}

// row matches a row of the operator's reference.
var row = regexp.MustCompile("(?m)^\\| `(slurm_operator_[a-z_]+)` \\| (gauge|counter|histogram) \\| ([a-z_, ]*) \\| ")

// Read returns the catalog of a repository.
func Read(root string) (Catalog, error) {
	known := maps.Clone(libraries)
	for name, list := range libraries {
		if slices.Contains(list, "le") {
			known.addHistogram(name, list)
		}
	}
	reference, err := os.ReadFile(filepath.Join(root, "docs", "reference", "metrics.md"))
	if err != nil {
		return nil, err
	}
	for _, match := range row.FindAllStringSubmatch(string(reference), -1) {
		name, kind, list := match[1], match[2], strings.FieldsFunc(match[3], func(char rune) bool {
			return char == ',' || char == ' '
		})
		if known[name] = list; kind == "histogram" {
			known.addHistogram(name, append(list, "le"))
		}
	}
	served, err := os.ReadFile(filepath.Join(root, "test", "slurmnet", "testdata", "metrics-26.05.txt"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(served)) {
		_, series, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, list, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		known[name] = append(strings.FieldsFunc(list, func(char rune) bool { return char == ',' }), slurmLabels...)
	}
	return known, nil
}

func (c Catalog) addHistogram(name string, list []string) {
	delete(c, name)
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		c[name+suffix] = list
	}
}

// Operator returns the operator's metrics, and not those of its libraries and of Slurm.
func (c Catalog) Operator() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c)),
		func(name string) bool { return !strings.HasPrefix(name, "slurm_operator_") })
}

// Check parses a query and returns the metrics in it. It fails if one of them does not exist, or lacks a label that the
// query selects by.
func (c Catalog) Check(query string) ([]string, error) {
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return nil, fmt.Errorf("%w in %s", err, query)
	}
	var names []string
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok || err != nil {
			return nil
		}
		known, exists := c[selector.Name]
		if !exists {
			err = fmt.Errorf("there is no metric %s, in %s", selector.Name, query)
			return nil
		}
		names = append(names, selector.Name)
		for _, matcher := range selector.LabelMatchers {
			if !slices.Contains(append(targetLabels, known...), matcher.Name) && matcher.Name != labels.MetricName {
				err = fmt.Errorf("%s has no label %s, in %s", selector.Name, matcher.Name, query)
			}
		}
		return nil
	})
	return names, err
}
