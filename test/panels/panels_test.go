package panels_test

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/test/panels"
	"github.com/slurm-operator/slurm-operator/test/prometheus"
)

// answers are the series of all queries that contain a text.
type answers map[string][]prometheus.Series

func (a answers) Range(_ context.Context, query string, _, _ time.Time, _ time.Duration) ([]prometheus.Series, error) {
	for text, series := range a {
		if strings.Contains(query, text) {
			return series, nil
		}
	}
	return nil, nil
}

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// series returns a series with values, one each minute.
func series(labels map[string]string, values ...float64) prometheus.Series {
	next := prometheus.Series{Labels: labels}
	for i, value := range values {
		next.Points = append(next.Points, prometheus.Point{At: begin.Add(time.Duration(i) * time.Minute), Value: value})
	}
	return next
}

// texts returns the texts in a picture, which must be well-formed.
func texts(t *testing.T, picture []byte) []string {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(string(picture)))
	var found []string
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("%v in %s", err, picture)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			found = append(found, strings.TrimSpace(string(text)))
		}
	}
}

func drawer(source panels.Source) panels.Drawer {
	return panels.Drawer{
		Source: source, From: begin, To: begin.Add(10 * time.Minute),
		Variables: map[string]string{"namespace": "hpc", "nodeset": ".*", "__rate_interval": "1m"},
	}
}

const board = `{"title": "One <board>", "panels": [
  {"type": "row", "title": "Now", "gridPos": {"x": 0, "y": 0, "w": 24, "h": 1}},
  {"type": "stat", "title": "Memory", "gridPos": {"x": 0, "y": 1, "w": 6, "h": 4},
   "fieldConfig": {"defaults": {"unit": "bytes"}}, "targets": [{"refId": "A", "expr": "memory{n=\"$namespace\"}"}]},
  {"type": "stat", "title": "Release", "gridPos": {"x": 6, "y": 1, "w": 6, "h": 4}, "options": {"textMode": "name"},
   "targets": [{"refId": "A", "expr": "version", "legendFormat": "Slurm {{version}}"}]},
  {"type": "timeseries", "title": "Nodes", "gridPos": {"x": 0, "y": 5, "w": 12, "h": 8},
   "fieldConfig": {"defaults": {"custom": {"stacking": {"mode": "normal"}}}},
   "targets": [{"refId": "A", "expr": "nodes", "legendFormat": "{{state}}"}]},
  {"type": "timeseries", "title": "Missing", "gridPos": {"x": 12, "y": 5, "w": 12, "h": 8},
   "targets": [{"refId": "A", "expr": "rate(nothing[$__rate_interval])"}]},
  {"type": "table", "title": "Sets", "gridPos": {"x": 0, "y": 13, "w": 24, "h": 8},
   "transformations": [{"id": "merge"}, {"id": "organize", "options": {
     "indexByName": {"set": 0, "Value #A": 1, "Value #B": 2},
     "renameByName": {"set": "NodeSet", "Value #A": "Pods", "Value #B": "Ready"}}}],
   "targets": [{"refId": "A", "expr": "pods"}, {"refId": "B", "expr": "ready"}]}]}`

func TestDrawsPanelsAndReportsGaps(t *testing.T) {
	picture, gaps, err := drawer(answers{
		`memory{n="hpc"}`: {series(nil, 1024, 3*1024*1024)},
		"version":         {series(map[string]string{"version": "26.05"}, 1)},
		"nodes": {
			series(map[string]string{"state": "idle"}, 3, 2), series(map[string]string{"state": "down"}, 0, 1),
		},
		"pods":  {series(map[string]string{"set": "gpu"}, 4), series(map[string]string{"set": "cpu"}, 9)},
		"ready": {series(map[string]string{"set": "cpu"}, 7)},
	}).Draw(t.Context(), []byte(board))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]panels.Gap{{"Missing", "rate(nothing[1m])"}}, gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	found := texts(t, picture)
	for _, want := range []string{"One <board>", "Now", "3 MB", "Slurm 26.05", "idle", "down", "no data", "NodeSet"} {
		if !slices.Contains(found, want) {
			t.Errorf("%q is not in the picture", want)
		}
	}
	if text := strings.Join(found, " "); !strings.Contains(text, "NodeSet Pods Ready cpu 9 7 gpu 4") {
		t.Errorf("the table is not in %s", text)
	}
}

func TestDrawsAllDashboards(t *testing.T) {
	files, err := filepath.Glob("../../charts/slurm-operator/files/monitoring/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d dashboards: %v", len(files), err)
	}
	source := answers{"": {series(map[string]string{"state": "idle"}, 3, 2)}}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		picture, gaps, err := drawer(source).Draw(t.Context(), content)
		if err != nil || len(gaps) > 0 {
			t.Errorf("%s: %v, %v", file, gaps, err)
		}
		if found := texts(t, picture); len(found) < 20 {
			t.Errorf("%s: only %q", file, found)
		}
	}
}
