// Package dashboards holds the Grafana dashboards.
//
// They show the operator's metrics, and slurmctld's own where the operator's do not suffice: those are there from Slurm
// 25.11 on, if spec.metrics of the Controller is enabled. Series are combined with max by (…), because every replica
// of the operator exports conditions and NodeSets.
package dashboards

import "fmt"

// all are the dashboards.
var all = []dashboard{fleet, cluster, nodeSets, scheduler, accounting, operator}

// Files returns the content of the file of each dashboard.
func Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for i := range all {
		content, err := all[i].json()
		if err != nil {
			return nil, err
		}
		files[all[i].name+".json"] = content
	}
	return files, nil
}

// Queries returns the queries of all panels, by dashboard and title, with example values for variables.
func Queries() map[string][]string {
	queries := map[string][]string{}
	for _, dashboard := range all {
		for _, row := range dashboard.rows {
			for _, panel := range row.panels {
				for _, query := range panel.queries {
					key := dashboard.name + ": " + panel.title
					queries[key] = append(queries[key], substitute(query.expr))
				}
			}
		}
	}
	return queries
}

// Variables of dashboards.
var (
	namespaceVariable = variable{
		name: "namespace", label: "Namespace", query: "label_values(slurm_operator_slurm_reachable, controller_namespace)",
	}
	controllerVariable = variable{
		name: "controller", label: "Controller",
		query: `label_values(slurm_operator_slurm_reachable{controller_namespace="$namespace"}, controller)`,
	}
	nodeSetNamespaceVariable = variable{
		name: "namespace", label: "Namespace", query: "label_values(slurm_operator_nodeset_info, nodeset_namespace)",
	}
	nodeSetVariable = variable{
		name: "nodeset", label: "NodeSet", all: true,
		query: `label_values(slurm_operator_nodeset_info{nodeset_namespace="$namespace"}, nodeset)`,
	}
)

// Selectors for the chosen objects.
const (
	selected    = `{controller_namespace="$namespace", controller="$controller"}`
	selectedSet = `{nodeset_namespace="$namespace", nodeset=~"$nodeset"}`
)

// maxBy combines the series of all replicas of the operator, or of all targets of a slurmctld.
func maxBy(labels, selector string) string { return fmt.Sprintf("max by (%s) (%s)", labels, selector) }

// one returns a panel with one query.
func one(kind kind, width int, title, unit, expr, legend string) panel {
	return panel{kind: kind, width: width, title: title, unit: unit, queries: []query{{expr, legend}}}
}

// redAbove makes a number red from a value on.
func redAbove(limit float64, panel panel) panel {
	panel.bad, panel.threshold = limit, true
	return panel
}

// conditions returns a table of the conditions that are not as they should be.
func conditions(matchers string) panel {
	return panel{
		kind: table, width: 24, title: "Objects that are not ready", unit: number,
		description: "docs/runbooks has a page for each reason.",
		queries: []query{{
			maxBy("object_namespace, kind, name, reason",
				`slurm_operator_condition{condition="Ready", status!="True"`+matchers+`}`), "",
		}},
		columns: []column{
			{"object_namespace", "Namespace"}, {"kind", "Kind"}, {"name", "Name"}, {"reason", "Reason"},
		},
	}
}
