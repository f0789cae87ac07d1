package rules_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

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
