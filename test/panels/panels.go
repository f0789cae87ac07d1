// Package panels draws Grafana dashboards with the data of a Prometheus, one SVG for each, so that a person can look at
// every panel without Grafana.
//
// It knows the panels that the operator's dashboards consist of: curves, stacked areas, numbers and tables.
package panels

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/test/prometheus"
)

// A Source evaluates queries over time.
type Source interface {
	Range(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]prometheus.Series, error)
}

// A Drawer draws dashboards.
type Drawer struct {
	Source Source
	// From and To are the period of time.
	From, To time.Time
	// Variables are the values of the dashboards' variables, without the $.
	Variables map[string]string
}

// points is the number of points of a curve.
const points = 240

// A Gap is a query that has no data, and its panel.
type Gap struct{ Panel, Query string }

// dashboard is the part of Grafana's format that is drawn.
type dashboard struct {
	Title  string
	Panels []panel
}

type panel struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct {
		Defaults struct {
			Unit   string
			Custom struct {
				Stacking struct{ Mode string }
			}
		}
	}
	Options         struct{ TextMode string }
	Targets         []target
	Transformations []struct {
		ID      string
		Options struct {
			IndexByName  map[string]int
			RenameByName map[string]string
		}
	}
}

type target struct{ RefID, Expr, LegendFormat string }

// A curve is a named series.
type curve struct {
	name string
	prometheus.Series
	ref string // of the query
}

// Draw returns the picture of a dashboard in Grafana's format, and the queries that have no data.
func (d Drawer) Draw(ctx context.Context, content []byte) ([]byte, []Gap, error) {
	var board dashboard
	if err := json.Unmarshal(content, &board); err != nil {
		return nil, nil, err
	}
	var gaps []Gap
	page := newPage(board, d.From, d.To)
	for i := range board.Panels {
		panel := &board.Panels[i]
		curves, missing, err := d.read(ctx, panel)
		if err != nil {
			return nil, nil, fmt.Errorf("panel %s: %w", panel.Title, err)
		}
		gaps = append(gaps, missing...)
		page.add(panel, curves)
	}
	return page.close(), gaps, nil
}

// DrawFile draws the dashboard in a file into a file of the same name, with the extension svg, in a directory, which is
// created. It returns the queries that have no data.
func (d Drawer) DrawFile(ctx context.Context, file, directory string) ([]Gap, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	picture, gaps, err := d.Draw(ctx, content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(file), ".json") + ".svg"
	return gaps, os.WriteFile(filepath.Join(directory, name), picture, 0o644)
}

// read evaluates the queries of a panel.
func (d Drawer) read(ctx context.Context, panel *panel) (curves []curve, gaps []Gap, err error) {
	step := max(d.To.Sub(d.From)/points, time.Second)
	for _, target := range panel.Targets {
		query := d.substitute(target.Expr)
		list, err := d.Source.Range(ctx, query, d.From, d.To, step)
		if err != nil {
			return nil, nil, err
		}
		if len(list) == 0 {
			gaps = append(gaps, Gap{panel.Title, query})
		}
		for _, series := range list {
			curves = append(curves, curve{nameOf(target.LegendFormat, series.Labels), series, target.RefID})
		}
	}
	slices.SortStableFunc(curves, func(a, b curve) int { return strings.Compare(a.name, b.name) })
	return curves, gaps, nil
}

// substitute replaces the variables in a query, the longest names first.
func (d Drawer) substitute(query string) string {
	values := map[string]string{"__range": fmt.Sprintf("%ds", max(int(d.To.Sub(d.From).Seconds()), 1))}
	maps.Copy(values, d.Variables)
	names := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		query = strings.ReplaceAll(query, "$"+name, values[name])
	}
	return query
}

// nameOf returns the name of a curve: the legend with the values of labels or, without a legend, all labels.
func nameOf(legend string, labels map[string]string) string {
	if legend == "" {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			parts = append(parts, name+"="+labels[name])
		}
		return strings.Join(parts, ", ")
	}
	for name, value := range labels {
		legend = strings.ReplaceAll(legend, "{{"+name+"}}", value)
	}
	return legend
}

// A table is the content of a table panel: one row for each set of labels, which the queries have in common.
type table struct {
	columns []string
	rows    [][]string
}

// newTable joins the last values of the queries of a table, and chooses its columns.
func newTable(panel *panel, curves []curve) table {
	var fields []string
	titles := map[string]string{}
	for _, transformation := range panel.Transformations {
		if transformation.ID != "organize" {
			continue
		}
		order := transformation.Options.IndexByName
		fields = slices.SortedFunc(maps.Keys(order), func(a, b string) int { return order[a] - order[b] })
		titles = transformation.Options.RenameByName
	}
	rows := []map[string]string{}
	for _, next := range curves {
		cells := maps.Clone(next.Labels)
		if cells == nil {
			cells = map[string]string{}
		}
		cells["Value #"+next.ref] = number(next.last())
		if !slices.ContainsFunc(rows, func(row map[string]string) bool { return join(row, cells) }) {
			rows = append(rows, cells)
		}
	}
	result := table{}
	for _, field := range fields {
		result.columns = append(result.columns, titles[field])
	}
	for _, row := range rows {
		cells := make([]string, len(fields))
		for i, field := range fields {
			cells[i] = row[field]
		}
		result.rows = append(result.rows, cells)
	}
	slices.SortFunc(result.rows, slices.Compare)
	return result
}

// join adds cells to a row if all that both have are the same. It reports whether it did.
func join(row, cells map[string]string) bool {
	for name, value := range cells {
		if other, both := row[name]; both && other != value {
			return false
		}
	}
	maps.Copy(row, cells)
	return true
}

// last returns the last value of a curve.
func (c curve) last() float64 {
	if len(c.Points) == 0 {
		return 0
	}
	return c.Points[len(c.Points)-1].Value
}
