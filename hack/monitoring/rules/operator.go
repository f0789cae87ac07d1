package rules

// ofCluster are the labels of a Slurm cluster.
var ofCluster = []string{"controller_namespace", "controller"}

const failedRequests = `sum by (controller_namespace, controller)
	(rate(slurm_operator_slurm_requests_total{result!~"ok|unchanged|not-found"}[10m])) / sum by
	(controller_namespace, controller) (rate(slurm_operator_slurm_requests_total[10m])) > 0.2`

// operatorAlerts are about the operator and its webhook.
var operatorAlerts = []Alert{
	{
		Name: "SlurmOperatorDown", Severity: Critical, For: "5m", Runbook: "SlurmOperatorDown",
		Expr:        `absent(max(controller_runtime_max_concurrent_reconciles{controller="slurmclient"}))`,
		Summary:     "No Slurm operator is active",
		Description: "Jobs continue; nothing is scaled, updated or repaired, and deleted slurmd pods are not replaced.",
		Fires:       Case{Series: map[string]string{`up{job="other"}`: "1x10"}, Minute: 6},
		Quiet: Case{Series: map[string]string{
			`controller_runtime_max_concurrent_reconciles{controller="slurmclient"}`: "4x10",
		}, Minute: 10},
	},
	{
		Name: "SlurmOperatorReconcileErrors", Severity: Warning, For: "15m", Runbook: "SlurmOperatorReconcileErrors",
		Expr: `sum by (controller) (increase(controller_runtime_reconcile_errors_total[15m]) and on (job, instance)
			controller_runtime_max_concurrent_reconciles{controller="slurmclient"}) > 3`,
		Labels:      []string{"controller"},
		Summary:     "Reconciles of the controller {{ $labels.controller }} fail",
		Description: "They are retried; the log of the operator names the objects and the errors.",
		Fires: Case{Series: map[string]string{
			`controller_runtime_reconcile_errors_total{controller="nodeset",job="o",instance="a"}`:        "0+1x60",
			`controller_runtime_max_concurrent_reconciles{controller="slurmclient",job="o",instance="a"}`: "4x60",
		}, Minute: 40, Labels: []string{"nodeset"}},
		Quiet: Case{Series: map[string]string{
			`controller_runtime_reconcile_errors_total{controller="nodeset",job="o",instance="a"}`:        "0 1 2 2x60",
			`controller_runtime_reconcile_errors_total{controller="token",job="other",instance="b"}`:      "0+1x60",
			`controller_runtime_max_concurrent_reconciles{controller="slurmclient",job="o",instance="a"}`: "4x60",
		}, Minute: 40},
	},
	{
		Name: "SlurmOperatorRequestErrors", Severity: Warning, For: "10m", Runbook: "SlurmOperatorRequestErrors",
		Expr: failedRequests, Labels: ofCluster,
		Summary:     "Requests to slurmrestd of {{ $labels.controller_namespace }}/{{ $labels.controller }} fail",
		Description: "{{ $value | humanizePercentage }} fail; slurm_operator_slurm_requests_total shows the results.",
		Fires: Case{Series: map[string]string{
			requests("timeout"): "0+1x60", requests("ok"): "0+2x60",
		}, Minute: 30, Labels: []string{"a", "s"}},
		Quiet: Case{Series: map[string]string{
			requests("timeout"): "0+1x60", requests("ok"): "0+9x60", requests("not-found"): "0+5x60",
		}, Minute: 30},
	},
	{
		Name: "SlurmOperatorRequestsSlow", Severity: Warning, For: "15m", Runbook: "SlurmOperatorRequestsSlow",
		Expr: `histogram_quantile(0.9, sum by (controller_namespace, controller, le)
			(rate(slurm_operator_slurm_request_duration_seconds_bucket[10m]))) > 5`, Labels: ofCluster,
		Summary:     "slurmrestd of {{ $labels.controller_namespace }}/{{ $labels.controller }} is slow",
		Description: "A tenth of the requests take more than {{ $value | humanizeDuration }}; decisions are slow.",
		Fires:       Case{Series: durations("0+1x60", "0+10x60"), Minute: 30, Labels: []string{"a", "s"}},
		Quiet:       Case{Series: durations("0+10x60", "0+10x60"), Minute: 30},
	},
	{
		Name: "SlurmOperatorSnapshotStale", Severity: Warning, For: "5m", Runbook: "SlurmOperatorSnapshotStale",
		Expr: `max by (controller_namespace, controller) (slurm_operator_slurm_snapshot_age_seconds) > 2700 and
			max by (controller_namespace, controller) (slurm_operator_slurm_reachable) == 1`, Labels: ofCluster,
		Summary:     "The nodes of {{ $labels.controller_namespace }}/{{ $labels.controller }} were not read for long",
		Description: "Slurm answers, and its nodes were last read {{ $value | humanizeDuration }} ago.",
		Fires: Case{Series: map[string]string{
			`slurm_operator_slurm_snapshot_age_seconds{controller_namespace="a",controller="s"}`: "0+60x60",
			`slurm_operator_slurm_reachable{controller_namespace="a",controller="s"}`:            "1x60",
		}, Minute: 55, Labels: []string{"a", "s"}},
		Quiet: Case{Series: map[string]string{
			`slurm_operator_slurm_snapshot_age_seconds{controller_namespace="a",controller="s"}`: "0+60x60",
			`slurm_operator_slurm_reachable{controller_namespace="a",controller="s"}`:            "0x60",
		}, Minute: 55},
	},
	{
		Name: "SlurmWebhookCertificateExpires", Severity: Critical, For: "10m", Runbook: "SlurmWebhookCertificateExpires",
		Expr:        `min(slurm_operator_webhook_certificate_expiry_timestamp_seconds) - time() < 3 * 86400`,
		Summary:     "The certificate of the Slurm operator's webhook expires soon",
		Description: "It expires in {{ $value | humanizeDuration }} and was not renewed; then specs are not reviewed.",
		Fires: Case{Series: map[string]string{
			`slurm_operator_webhook_certificate_expiry_timestamp_seconds{pod="w"}`: "86400x20",
		}, Minute: 15},
		Quiet: Case{Series: map[string]string{
			`slurm_operator_webhook_certificate_expiry_timestamp_seconds{pod="w"}`: "864000x20",
		}, Minute: 15},
	},
	{
		Name: "SlurmRestApiCertificateExpires", Severity: Warning, For: "10m", Runbook: "SlurmRestApiCertificateExpires",
		Expr: `max by (restapi_namespace, restapi) (slurm_operator_restapi_certificate_expiry_timestamp_seconds) - time() <
			7 * 86400`,
		Labels:      []string{"restapi_namespace", "restapi"},
		Summary:     "The certificate of RestApi {{ $labels.restapi_namespace }}/{{ $labels.restapi }} expires soon",
		Description: "It expires in {{ $value | humanizeDuration }}; then neither clients nor the operator reach slurmrestd.",
		Fires:       Case{Series: served("518400x20"), Minute: 15, Labels: []string{"a", "s"}},
		Quiet:       Case{Series: served("864000x20"), Minute: 15},
	},
	{
		Name: "SlurmTokenExpires", Severity: Warning, For: "1m", Runbook: "SlurmTokenExpires",
		Expr: `max by (token_namespace, token) (slurm_operator_token_expiry_timestamp_seconds) - time() <
			(max by (token_namespace, token) (slurm_operator_token_expiry_timestamp_seconds) -
			max by (token_namespace, token) (slurm_operator_token_issued_timestamp_seconds)) / 6`,
		Labels:      []string{"token_namespace", "token"},
		Summary:     "Token {{ $labels.token_namespace }}/{{ $labels.token }} expires soon",
		Description: "It was not renewed; programs that use it will be refused.",
		Fires:       Case{Series: token("0x120", "3600x120"), Minute: 55, Labels: []string{"a", "alice"}},
		Quiet:       Case{Series: token("0x120", "3600x120"), Minute: 45},
	},
}

// requests returns the series of requests with a result.
func requests(result string) string {
	return `slurm_operator_slurm_requests_total{controller_namespace="a",controller="s",call="nodes",result="` +
		result + `"}`
}

// durations are requests to slurmrestd, of which some take less than five seconds.
func durations(short, all string) map[string]string {
	const series = `slurm_operator_slurm_request_duration_seconds_bucket{controller_namespace="a",controller="s",` +
		`call="nodes",le=`
	return map[string]string{series + `"2"}`: short, series + `"10"}`: all, series + `"+Inf"}`: all}
}

// served returns the series of when slurmrestd's certificate expires.
func served(expires string) map[string]string {
	return map[string]string{
		`slurm_operator_restapi_certificate_expiry_timestamp_seconds{restapi_namespace="a",restapi="s"}`: expires,
	}
}

func token(issued, expires string) map[string]string {
	return map[string]string{
		`slurm_operator_token_issued_timestamp_seconds{token_namespace="a",token="alice"}`: issued,
		`slurm_operator_token_expiry_timestamp_seconds{token_namespace="a",token="alice"}`: expires,
	}
}
