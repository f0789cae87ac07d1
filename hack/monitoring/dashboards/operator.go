package dashboards

// mine limits a metric of controller-runtime to the operator: others have metrics of the same name.
const mine = ` and on (job, instance) controller_runtime_max_concurrent_reconciles{controller="slurmclient"}`

// operator is about the operator itself.
var operator = dashboard{
	name: "operator", title: "Slurm / Operator", description: "The operator's own health and cost.",
	rows: []row{
		{"Now", []panel{
			one(stat, 4, "Leaders", number, `sum(leader_election_master_status{name="slurm-operator"})`, ""),
			one(stat, 5, "Objects that are not ready", number,
				`count(max by (object_namespace, kind, name) (slurm_operator_condition{condition="Ready", status!="True"}))`+
					" or vector(0)", ""),
			one(stat, 5, "Next expiry of a Token", moment,
				"1000 * min(slurm_operator_token_expiry_timestamp_seconds)", ""),
			one(stat, 5, "Next expiry of a certificate of slurmrestd", moment,
				"1000 * min(slurm_operator_restapi_certificate_expiry_timestamp_seconds)", ""),
			one(stat, 5, "Expiry of the webhook's certificate", moment,
				"1000 * min(slurm_operator_webhook_certificate_expiry_timestamp_seconds)", ""),
		}},
		{"Reconciles", []panel{
			one(graph, 12, "Reconciles", perSec,
				"sum by (controller) (rate(controller_runtime_reconcile_total[$__rate_interval])"+mine+")", "{{controller}}"),
			one(graph, 12, "Errors", perSec,
				"sum by (controller) (rate(controller_runtime_reconcile_errors_total[$__rate_interval])"+mine+")",
				"{{controller}}"),
			one(graph, 12, "Duration of 9 of 10 reconciles", seconds,
				"histogram_quantile(0.9, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket"+
					"[$__rate_interval])"+mine+"))", "{{controller}}"),
			one(graph, 12, "Queued objects", number, "sum by (name) (workqueue_depth"+mine+")", "{{name}}"),
		}},
		{"Cost", []panel{
			one(graph, 8, "CPUs", number, "rate(process_cpu_seconds_total[$__rate_interval])"+mine, "{{pod}}"),
			one(graph, 8, "Memory", bytes, "process_resident_memory_bytes"+mine, "{{pod}}"),
			one(graph, 8, "Goroutines", number, "go_goroutines"+mine, "{{pod}}"),
			one(graph, 12, "Requests to the API server", perSec,
				"sum by (method, code) (rate(rest_client_requests_total[$__rate_interval])"+mine+")", "{{method}} {{code}}"),
			one(graph, 12, "Requests to Slurm", perSec, "sum by ("+byCluster+
				") (rate(slurm_operator_slurm_requests_total[$__rate_interval]))", clusterLegend),
			conditions(""),
		}},
	},
}
