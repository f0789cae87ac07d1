package dashboards

// ofSlurmctld returns a query for a metric of slurmctld itself.
func ofSlurmctld(metric string) string { return maxBy(byCluster, metric+selected) }

// scheduler is about slurmctld's load.
var scheduler = dashboard{
	name: "scheduler", title: "Slurm / Scheduler and requests",
	description: "slurmctld's scheduler and load, from its own metrics (Slurm 25.11 and later), and the operator's " +
		"requests.",
	variables: []variable{namespaceVariable, controllerVariable},
	rows: []row{
		{"Scheduler", []panel{
			{
				kind: graph, width: 12, title: "Duration of a cycle", unit: micros,
				queries: []query{
					{ofSlurmctld("slurm_schedule_cycle_last"), "main, last"}, {ofSlurmctld("slurm_sched_mean_cycle"), "main, mean"},
					{ofSlurmctld("slurm_bf_cycle_last"), "backfill, last"}, {ofSlurmctld("slurm_bf_mean_cycle"), "backfill, mean"},
				},
			},
			{
				kind: graph, width: 12, title: "Queue length", unit: number,
				queries: []query{
					{ofSlurmctld("slurm_schedule_queue_len"), "main"}, {ofSlurmctld("slurm_bf_queue_len"), "backfill"},
				},
			},
			one(graph, 12, "Jobs started by backfill since the last restart", number,
				ofSlurmctld("slurm_backfilled_jobs"), "jobs"),
			{
				kind: graph, width: 12, title: "Depth of backfill", unit: number,
				queries: []query{
					{ofSlurmctld("slurm_bf_last_depth"), "jobs considered"}, {ofSlurmctld("slurm_bf_last_depth_try"), "jobs tried"},
				},
			},
		}},
		{"slurmctld", []panel{
			redAbove(200, one(graph, 8, "Requests served at once", number, ofSlurmctld("slurm_server_thread_cnt"), "threads")),
			{
				kind: graph, width: 8, title: "Messages to nodes", unit: number,
				queries: []query{
					{ofSlurmctld("slurm_agent_queue_size"), "queued"}, {ofSlurmctld("slurm_agent_thread_cnt"), "threads"},
				},
			},
			one(graph, 8, "Records for slurmdbd", number, ofSlurmctld("slurm_slurmdbd_queue_size"), "queued"),
		}},
		{"The operator's requests to slurmrestd", []panel{
			one(graph, 12, "Requests", perSec, "sum by (call, result) (rate(slurm_operator_slurm_requests_total"+selected+
				"[$__rate_interval]))", "{{call}}: {{result}}"),
			one(graph, 12, "Duration of 9 of 10 requests", seconds,
				"histogram_quantile(0.9, sum by (call, le) (rate(slurm_operator_slurm_request_duration_seconds_bucket"+selected+
					"[$__rate_interval])))", "{{call}}"),
			one(graph, 12, "Received", bytesSec, "sum by (call) (rate(slurm_operator_slurm_received_bytes_total"+selected+
				"[$__rate_interval]))", "{{call}}"),
			one(graph, 12, "Age of the last list of nodes", seconds,
				maxBy(byCluster, "slurm_operator_slurm_snapshot_age_seconds"+selected), "nodes"),
		}},
	},
}
