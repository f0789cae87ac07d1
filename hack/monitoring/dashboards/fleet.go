package dashboards

const byCluster = "controller_namespace, controller"

// clusterLegend names a cluster.
const clusterLegend = "{{controller_namespace}}/{{controller}}"

// share returns the allocated share of a resource by cluster.
func share(metric string) string {
	return "sum by (" + byCluster + ") (" + metric + `{state="allocated"}) / sum by (` + byCluster + ") (" + metric + ")"
}

// fleet is about all clusters.
var fleet = dashboard{
	name: "fleet", title: "Slurm / Fleet", description: "All Slurm clusters of this operator.",
	rows: []row{
		{"Now", []panel{
			one(stat, 4, "Clusters", number, "count("+maxBy(byCluster, "slurm_operator_slurm_reachable")+")", ""),
			redAbove(1, one(stat, 4, "Clusters that do not answer", number,
				"count("+maxBy(byCluster, "slurm_operator_slurm_reachable")+" == 0) or vector(0)", "")),
			one(stat, 4, "Slurm nodes", number, "sum(slurm_operator_slurm_nodes)", ""),
			redAbove(1, one(stat, 4, "Slurm nodes down", number, `sum(slurm_operator_slurm_nodes{state="down"})`, "")),
			one(stat, 4, "Running jobs", number, `sum(slurm_operator_slurm_jobs{state="running"})`, ""),
			one(stat, 4, "Pending jobs", number, `sum(slurm_operator_slurm_jobs{state="pending"})`, ""),
		}},
		{"Clusters", []panel{
			{
				kind: table, width: 24, title: "Clusters", unit: number,
				queries: []query{
					{maxBy(byCluster+", version", "slurm_operator_slurm_info"), ""},
					{maxBy(byCluster, "slurm_operator_slurm_reachable"), ""},
					{"sum by (" + byCluster + ") (slurm_operator_slurm_nodes)", ""},
					{"sum by (" + byCluster + `) (slurm_operator_slurm_nodes{state=~"down|not-responding"})`, ""},
					{"sum by (" + byCluster + ") (slurm_operator_slurm_drained_nodes)", ""},
					{"sum by (" + byCluster + `) (slurm_operator_slurm_jobs{state="running"})`, ""},
					{"sum by (" + byCluster + `) (slurm_operator_slurm_jobs{state="pending"})`, ""},
				},
				columns: []column{
					{"controller_namespace", "Namespace"}, {"controller", "Controller"}, {"version", "Slurm"},
					{valueOf(1), "Answers"}, {valueOf(2), "Nodes"}, {valueOf(3), "Down"}, {valueOf(4), "Drained"},
					{valueOf(5), "Running"}, {valueOf(6), "Pending"},
				},
			},
			conditions(""),
		}},
		{"Use", []panel{
			one(graph, 12, "Allocated CPUs", percent, share("slurm_operator_slurm_cpus"), clusterLegend),
			one(graph, 12, "Allocated GPUs", percent, share("slurm_operator_slurm_gpus"), clusterLegend),
			one(graph, 12, "Pending jobs", number,
				maxBy(byCluster, `slurm_operator_slurm_jobs{state="pending"}`), clusterLegend),
			one(graph, 12, "Slurm nodes that take no jobs", number, "sum by ("+byCluster+
				`) (slurm_operator_slurm_nodes{state=~"down|not-responding|draining|drained"})`, clusterLegend),
		}},
	},
}
