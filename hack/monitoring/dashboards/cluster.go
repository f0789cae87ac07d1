package dashboards

// waiting returns a panel with pending jobs by a label.
func waiting(title, label string) panel {
	next := one(stack, 12, title, number, "sum by ("+label+") ("+
		maxBy("partition, reason", "slurm_operator_slurm_pending_jobs"+selected)+")", "{{"+label+"}}")
	next.description = "A job counts in each of its partitions. Empty with more than 1,000 jobs, which are only counted."
	return next
}

// cluster is about one cluster.
var cluster = dashboard{
	name: "cluster", title: "Slurm / Cluster", description: "Nodes, resources, jobs and drains of a Slurm cluster.",
	variables: []variable{namespaceVariable, controllerVariable},
	rows: []row{
		{"Now", []panel{
			one(stat, 4, "slurmctld answers", number, maxBy(byCluster, "slurm_operator_slurm_reachable"+selected), ""),
			one(stat, 4, "Slurm", number, maxBy("version", "slurm_operator_slurm_info"+selected), "{{version}}"),
			one(stat, 4, "Slurm nodes", number, "sum(slurm_operator_slurm_nodes"+selected+")", ""),
			one(stat, 4, "Running jobs", number, maxBy("state",
				`slurm_operator_slurm_jobs{controller_namespace="$namespace", controller="$controller", state="running"}`), ""),
			one(stat, 4, "Pending jobs", number, maxBy("state",
				`slurm_operator_slurm_jobs{controller_namespace="$namespace", controller="$controller", state="pending"}`), ""),
			redAbove(1, one(stat, 4, "Too many jobs to list", number,
				"max(slurm_operator_slurm_queue_partial"+selected+")", "")),
		}},
		{"Resources", []panel{
			one(stack, 12, "Slurm nodes by state", number, maxBy("state", "slurm_operator_slurm_nodes"+selected), "{{state}}"),
			one(graph, 12, "Jobs", number, maxBy("state", "slurm_operator_slurm_jobs"+selected), "{{state}}"),
			one(stack, 8, "CPUs", number, maxBy("state", "slurm_operator_slurm_cpus"+selected), "{{state}}"),
			one(stack, 8, "Memory", bytes, maxBy("state", "slurm_operator_slurm_memory_bytes"+selected), "{{state}}"),
			one(stack, 8, "GPUs", number, maxBy("state", "slurm_operator_slurm_gpus"+selected), "{{state}}"),
		}},
		{"Pending jobs", []panel{
			waiting("Pending jobs by reason", "reason"), waiting("Pending jobs by partition", "partition"),
		}},
		{"Partitions", []panel{
			one(graph, 8, "Allocated CPUs", percent,
				`sum by (partition) (slurm_operator_slurm_partition_cpus{controller_namespace="$namespace", `+
					`controller="$controller", state="allocated"}) / sum by (partition) (slurm_operator_slurm_partition_cpus`+
					selected+")", "{{partition}}"),
			one(graph, 8, "Slurm nodes that take no jobs", number,
				`sum by (partition) (slurm_operator_slurm_partition_nodes{controller_namespace="$namespace", `+
					`controller="$controller", state=~"down|not-responding|draining|drained"})`, "{{partition}}"),
			one(graph, 8, "Jobs, pending or with nodes", number,
				maxBy("partition", "slurm_operator_slurm_partition_jobs"+selected), "{{partition}}"),
		}},
		{"Drains and configuration", []panel{
			one(stack, 12, "Drained Slurm nodes by cause", number,
				maxBy("cause", "slurm_operator_slurm_drained_nodes"+selected), "{{cause}}"),
			one(graph, 12, "Age of the oldest drain", seconds,
				"time() - "+maxBy("cause", "slurm_operator_slurm_oldest_drain_timestamp_seconds"+selected), "{{cause}}"),
			one(stat, 8, "Configuration since", moment, `1000 * max(slurm_operator_condition_last_transition_timestamp_seconds`+
				`{kind="Controller", object_namespace="$namespace", name="$controller", condition="ConfigurationApplied"})`, ""),
			one(stat, 8, "Next expiry of a Token", moment,
				`1000 * min(slurm_operator_token_expiry_timestamp_seconds{token_namespace="$namespace"})`, ""),
			one(stat, 8, "Next expiry of a certificate of slurmrestd", moment,
				`1000 * min(slurm_operator_restapi_certificate_expiry_timestamp_seconds{restapi_namespace="$namespace"})`, ""),
			conditions(`, object_namespace="$namespace"`),
		}},
	},
}
