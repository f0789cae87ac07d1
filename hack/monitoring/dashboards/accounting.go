package dashboards

// largest returns a query for the ten largest values of a metric by a label.
func largest(label, metric string) string { return "topk(10, " + maxBy(label, metric+selected) + ")" }

// accounting is about users, accounts and the database.
var accounting = dashboard{
	name: "accounting", title: "Slurm / Accounting and users",
	description: "Users and accounts, from slurmctld's path /metrics/jobs-users-accts, which is not scraped by default, " +
		"and the state of accounting.",
	variables: []variable{namespaceVariable, controllerVariable},
	rows: []row{
		{"Users", []panel{
			one(graph, 8, "CPUs of running jobs", number, largest("username", "slurm_user_jobs_cpus_alloc"), "{{username}}"),
			one(graph, 8, "GPUs of running jobs", number, largest("username", "slurm_user_jobs_gpus_alloc"), "{{username}}"),
			one(graph, 8, "Pending jobs", number, largest("username", "slurm_user_jobs_pending"), "{{username}}"),
		}},
		{"Accounts", []panel{
			one(graph, 8, "CPUs of running jobs", number, largest("account", "slurm_account_jobs_cpus_alloc"), "{{account}}"),
			one(graph, 8, "GPUs of running jobs", number, largest("account", "slurm_account_jobs_gpus_alloc"), "{{account}}"),
			one(graph, 8, "Pending jobs", number, largest("account", "slurm_account_jobs_pending"), "{{account}}"),
		}},
		{"Jobs", []panel{
			{
				kind: graph, width: 12, title: "Ended jobs that slurmctld still has", unit: number,
				description: "slurmctld forgets a job MinJobAge seconds after its end.",
				queries: []query{
					{ofSlurmctld("slurm_jobs_completed"), "completed"}, {ofSlurmctld("slurm_jobs_failed"), "failed"},
					{ofSlurmctld("slurm_jobs_timeout"), "timeout"}, {ofSlurmctld("slurm_jobs_cancelled"), "cancelled"},
					{ofSlurmctld("slurm_jobs_outofmemory"), "out of memory"}, {ofSlurmctld("slurm_jobs_node_failed"), "node failed"},
				},
			},
			{
				kind: graph, width: 12, title: "Jobs that wait or are held", unit: number,
				queries: []query{
					{ofSlurmctld("slurm_jobs_pending"), "pending"}, {ofSlurmctld("slurm_jobs_hold"), "held"},
					{ofSlurmctld("slurm_jobs_suspended"), "suspended"}, {ofSlurmctld("slurm_jobs_completing"), "completing"},
				},
			},
		}},
		{"Accounting", []panel{
			one(graph, 12, "Records for slurmdbd", number, ofSlurmctld("slurm_slurmdbd_queue_size"), "queued"),
			one(stat, 12, "Database reachable", number,
				`count(max by (name) (slurm_operator_condition{kind="Accounting", object_namespace="$namespace", `+
					`condition="DatabaseReachable", status="True"})) or vector(0)`, ""),
		}},
	},
}
