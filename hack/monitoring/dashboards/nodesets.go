package dashboards

const bySet = "nodeset"

// nodeSets is about rollouts, drains and waits.
var nodeSets = dashboard{
	name: "nodesets", title: "Slurm / NodeSets", description: "Rollouts, drains and waits of NodeSets.",
	variables: []variable{nodeSetNamespaceVariable, nodeSetVariable},
	rows: []row{
		{"Now", []panel{{
			kind: table, width: 24, title: "NodeSets", unit: number,
			queries: []query{
				{maxBy(bySet+", controller", "slurm_operator_nodeset_info"+selectedSet), ""},
				{maxBy(bySet, "slurm_operator_nodeset_desired_pods"+selectedSet), ""},
				{maxBy(bySet, "slurm_operator_nodeset_pods"+selectedSet), ""},
				{maxBy(bySet, "slurm_operator_nodeset_ready_pods"+selectedSet), ""},
				{maxBy(bySet, "slurm_operator_nodeset_available_pods"+selectedSet), ""},
				{maxBy(bySet, "slurm_operator_nodeset_outdated_pods"+selectedSet), ""},
			},
			columns: []column{
				{"nodeset", "NodeSet"}, {"controller", "Controller"}, {valueOf(1), "Desired"}, {valueOf(2), "Pods"},
				{valueOf(3), "Ready"}, {valueOf(4), "Available"}, {valueOf(5), "To be replaced"},
			},
		}}},
		{"Pods", []panel{
			{
				kind: graph, width: 12, title: "Desired and available pods", unit: number,
				queries: []query{
					{maxBy(bySet, "slurm_operator_nodeset_desired_pods"+selectedSet), "{{nodeset}} desired"},
					{maxBy(bySet, "slurm_operator_nodeset_available_pods"+selectedSet), "{{nodeset}} available"},
				},
			},
			one(graph, 12, "Rollout: pods to be replaced", number,
				maxBy(bySet, "slurm_operator_nodeset_outdated_pods"+selectedSet), "{{nodeset}}"),
			one(stack, 12, "Slurm nodes by state", number,
				"sum by (state) ("+maxBy(bySet+", state", "slurm_operator_nodeset_nodes"+selectedSet)+")", "{{state}}"),
			one(stack, 12, "Pods that wait for their deletion", number,
				"sum by (for) ("+maxBy(bySet+", for", "slurm_operator_nodeset_waiting_pods"+selectedSet)+")", "for {{for}}"),
		}},
		{"Waits and decisions", []panel{
			one(graph, 12, "Time until the last job ends", seconds,
				maxBy(bySet, "slurm_operator_nodeset_wait_end_timestamp_seconds"+selectedSet)+" - time()", "{{nodeset}}"),
			one(graph, 12, "Actions of all NodeSets", perSec,
				"sum by (action, cause) (rate(slurm_operator_nodeset_actions_total[$__rate_interval]))", "{{action}}: {{cause}}"),
			{
				kind: graph, width: 12, title: "Time from drain to deletion, of all NodeSets", unit: seconds,
				queries: []query{
					{"histogram_quantile(0.5, sum by (le) (rate(slurm_operator_nodeset_drain_seconds_bucket[$__range])))", "half"},
					{"histogram_quantile(0.9, sum by (le) (rate(slurm_operator_nodeset_drain_seconds_bucket[$__range])))", "9 of 10"},
				},
			},
			one(stack, 12, "Slurm nodes of elastic NodeSets that cannot be started", number,
				"sum by (cause) ("+maxBy("controller, cause",
					`slurm_operator_slurm_drained_nodes{controller_namespace="$namespace", cause=~"NoCapacity|NotStarted"}`)+")",
				"{{cause}}"),
			conditions(`, kind="NodeSet", object_namespace="$namespace", name=~"$nodeset"`),
		}},
		{"Use and power-ups", []panel{
			one(stack, 12, "Pods on Kubernetes nodes by use", number,
				"sum by (use) (rate(slurm_operator_nodeset_node_seconds_total"+selectedSet+"[$__rate_interval]))", "{{use}}"),
			one(graph, 12, "Time of power-ups, 9 of 10", seconds,
				"histogram_quantile(0.9, sum by (le, nodeset) (rate(slurm_operator_nodeset_power_up_seconds_bucket"+selectedSet+
					"[$__range])))", "{{nodeset}}"),
			one(graph, 12, "Time of power-ups by phase, 9 of 10", seconds,
				"histogram_quantile(0.9, sum by (le, phase) (rate(slurm_operator_nodeset_power_up_phase_seconds_bucket"+selectedSet+
					"[$__range])))", "{{phase}}"),
		}},
	},
}
