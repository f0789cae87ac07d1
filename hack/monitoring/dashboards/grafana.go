package dashboards

import (
	"encoding/json"
	"fmt"
)

// A dashboard is a Grafana dashboard: rows of panels, from left to right and from top to bottom.
type dashboard struct {
	// name is that of the file and of the UID, title that in Grafana.
	name, title, description string
	variables                []variable
	rows                     []row
}

// A variable is a choice at the top of a dashboard.
type variable struct {
	name, label, query string
	// all says that several or all values can be chosen.
	all bool
}

// A row is a row of panels with a title.
type row struct {
	title  string
	panels []panel
}

// A kind is how a panel shows its data.
type kind string

// The kinds of panels.
const (
	graph kind = "timeseries" // curves over time
	stack kind = "stack"      // areas on top of each other over time
	stat  kind = "stat"       // one number or, if the query has a legend, that
	table kind = "table"      // one row for each series, now
)

// Units, as Grafana names them.
const (
	number   = "short"
	percent  = "percentunit"
	bytes    = "bytes"
	seconds  = "s"
	micros   = "µs"
	perSec   = "ops"
	bytesSec = "Bps"
	moment   = "dateTimeFromNow"
)

// A panel shows the results of queries.
type panel struct {
	kind        kind
	title       string
	description string
	unit        string
	// width is in 24ths of the dashboard.
	width   int
	queries []query
	// bad is the value from which on a number is red; good says that it is red below instead.
	bad       float64
	threshold bool
	// columns renames the columns of a table, and hides those that are not named.
	columns []column
}

// A query is a PromQL query and the name of its curves.
type query struct {
	expr, legend string
}

// A column is a column of a table: the label, or Value #A for the value of the first query.
type column struct{ field, title string }

// height is the height of panels, in Grafana's units.
const height, statHeight = 8, 4

// gridWidth is the width of a dashboard.
const gridWidth = 24

type object = map[string]any

// source is the data source that the user chooses.
var source = object{"type": "prometheus", "uid": "$datasource"}

// JSON returns the dashboard in Grafana's format.
func (d *dashboard) json() ([]byte, error) {
	var panels []object
	id, y := 0, 0
	add := func(next object, x, width, height int) {
		id++
		next["id"] = id
		next["gridPos"] = object{"x": x, "y": y, "w": width, "h": height}
		panels = append(panels, next)
	}
	for _, row := range d.rows {
		add(object{"type": "row", "title": row.title, "collapsed": false, "panels": []object{}}, 0, gridWidth, 1)
		y++
		x, tallest := 0, 0
		for i := range row.panels {
			panel := &row.panels[i]
			if x+panel.width > gridWidth {
				x, y, tallest = 0, y+tallest, 0
			}
			add(panel.object(), x, panel.width, panel.height())
			x, tallest = x+panel.width, max(tallest, panel.height())
		}
		y += tallest
	}
	content, err := json.MarshalIndent(object{
		"uid": "slurm-" + d.name, "title": d.title, "description": d.description, "tags": []string{"slurm"},
		"schemaVersion": 39, "version": 1, "editable": false, "graphTooltip": 1, "refresh": "1m", "timezone": "browser",
		"time":       object{"from": "now-6h", "to": "now"},
		"templating": object{"list": d.variableObjects()},
		"links": []object{{
			"type": "dashboards", "tags": []string{"slurm"}, "asDropdown": true, "title": "Slurm", "includeVars": true,
			"keepTime": true,
		}},
		"annotations": object{"list": []object{}},
		"panels":      panels,
	}, "", "  ")
	return append(content, '\n'), err
}

func (d *dashboard) variableObjects() []object {
	list := []object{{"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus"}}
	for _, variable := range d.variables {
		next := object{
			"type": "query", "name": variable.name, "label": variable.label, "datasource": source, "refresh": 2, "sort": 1,
			"query": object{"query": variable.query, "refId": variable.name},
		}
		if variable.all {
			next["includeAll"], next["multi"], next["allValue"] = true, true, ".*"
			next["current"] = object{"text": "All", "value": "$__all"}
		}
		list = append(list, next)
	}
	return list
}

func (p *panel) height() int {
	if p.kind == stat {
		return statHeight
	}
	return height
}

func (p *panel) object() object {
	defaults := object{"unit": p.unit, "custom": object{}}
	options := object{}
	switch p.kind {
	case graph:
		defaults["custom"] = object{"fillOpacity": 10, "showPoints": "never"}
		options = legend()
	case stack:
		defaults["custom"] = object{"fillOpacity": 60, "showPoints": "never", "stacking": object{"mode": "normal"}}
		options = legend()
	case stat:
		options = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "graphMode": "area"}
		if p.queries[0].legend != "" {
			options["textMode"] = "name"
		}
	case table:
		options = object{"showHeader": true}
	}
	if p.threshold {
		defaults["color"] = object{"mode": "thresholds"}
		defaults["thresholds"] = object{"mode": "absolute", "steps": []object{
			{"color": "green", "value": nil}, {"color": "red", "value": p.bad},
		}}
	}
	next := object{
		"type": p.grafanaType(), "title": p.title, "description": p.description, "datasource": source,
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}}, "options": options, "targets": p.targets(),
	}
	if p.kind == table {
		next["transformations"] = p.transformations()
	}
	return next
}

func legend() object {
	return object{
		"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true},
		"tooltip": object{"mode": "multi", "sort": "desc"},
	}
}

func (p *panel) grafanaType() string {
	if p.kind == stack {
		return string(graph)
	}
	return string(p.kind)
}

func (p *panel) targets() []object {
	var targets []object
	for i, query := range p.queries {
		target := object{
			"refId": string(rune('A' + i)), "datasource": source, "expr": query.expr, "legendFormat": query.legend,
		}
		if p.kind == table {
			target["format"], target["instant"] = "table", true
		}
		targets = append(targets, target)
	}
	return targets
}

// transformations join the queries of a table by their labels, and choose the columns.
func (p *panel) transformations() []object {
	order, names, shown := object{}, object{}, make([]string, len(p.columns))
	for i, column := range p.columns {
		order[column.field], names[column.field], shown[i] = i, column.title, column.field
	}
	return []object{
		{"id": "merge", "options": object{}},
		{"id": "filterFieldsByName", "options": object{"include": object{"names": shown}}},
		{"id": "organize", "options": object{"indexByName": order, "renameByName": names}},
	}
}

// valueOf returns the name of the column with the value of the query at an index.
func valueOf(index int) string { return fmt.Sprintf("Value #%c", 'A'+index) }
