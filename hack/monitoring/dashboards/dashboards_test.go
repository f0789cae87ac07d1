package dashboards_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/monitoring/catalog"
	"github.com/slurm-operator/slurm-operator/hack/monitoring/dashboards"
	"github.com/slurm-operator/slurm-operator/hack/monitoring/rules"
)

const root = "../../.."

func TestPanelsUseExistingMetrics(t *testing.T) {
	metrics, err := catalog.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	for panel, queries := range dashboards.Queries() {
		for _, query := range queries {
			if strings.Contains(query, "$") {
				t.Errorf("%s: an unknown variable in %s", panel, query)
			}
			if _, err := metrics.Check(query); err != nil {
				t.Errorf("%s: %v", panel, err)
			}
		}
	}
}

// TestEveryMetricOfTheOperatorIsUsed checks that each metric is in a panel or a rule: what is not shown to anybody need
// not be exported.
func TestEveryMetricOfTheOperatorIsUsed(t *testing.T) {
	metrics, err := catalog.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	check := func(query string) {
		names, _ := metrics.Check(query) // errors fail other tests
		used = append(used, names...)
	}
	for _, queries := range dashboards.Queries() {
		for _, query := range queries {
			check(query)
		}
	}
	for _, alert := range rules.Alerts() {
		check(alert.Expr)
	}
	for _, name := range metrics.Operator() {
		if strings.HasSuffix(name, "_sum") || strings.HasSuffix(name, "_count") {
			continue
		}
		if !slices.Contains(used, name) {
			t.Errorf("no panel and no rule uses %s", name)
		}
	}
}

// TestDashboardsAreWellFormed checks what Grafana needs of each panel.
func TestDashboardsAreWellFormed(t *testing.T) {
	files, err := dashboards.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		var dashboard struct {
			UID, Title, Description string
			Panels                  []struct {
				ID         int
				Type       string
				Title      string
				Datasource struct{ UID string }
				GridPos    struct{ X, Y, W, H int }
				Targets    []struct{ Expr, RefID string }
			}
		}
		if err := json.Unmarshal(content, &dashboard); err != nil {
			t.Fatal(err)
		}
		if dashboard.UID != "slurm-"+strings.TrimSuffix(name, ".json") || dashboard.Title == "" ||
			dashboard.Description == "" {
			t.Errorf("%s: UID %q, title %q, description %q", name, dashboard.UID, dashboard.Title, dashboard.Description)
		}
		ids, cells := map[int]bool{}, map[[2]int]string{}
		for _, panel := range dashboard.Panels {
			if ids[panel.ID] || panel.Title == "" {
				t.Errorf("%s: panel %d is %q, twice or without a title", name, panel.ID, panel.Title)
			}
			ids[panel.ID] = true
			if panel.Type != "row" && (panel.Datasource.UID != "$datasource" || len(panel.Targets) == 0) {
				t.Errorf("%s: panel %q has no data source or no query", name, panel.Title)
			}
			for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
				for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
					if other, taken := cells[[2]int{x, y}]; taken || x >= 24 {
						t.Fatalf("%s: panel %q overlaps %q or the border", name, panel.Title, other)
					}
					cells[[2]int{x, y}] = panel.Title
				}
			}
		}
	}
}

func TestDashboardFilesAreCurrent(t *testing.T) {
	files, err := dashboards.Files()
	if err != nil {
		t.Fatal(err)
	}
	directory := filepath.Join(root, "charts", "slurm-operator", "files", "monitoring", "dashboards")
	present, err := os.ReadDir(directory)
	if err != nil || len(present) != len(files) {
		t.Errorf("%d files, want %d: %v", len(present), len(files), err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil || !bytes.Equal(want, got) {
			t.Errorf("%s is not current, run make generate: %v", name, err)
		}
	}
}
