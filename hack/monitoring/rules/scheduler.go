package rules

import "fmt"

// above returns an alert about a metric of slurmctld itself that is above a limit.
func above(alert Alert, metric string, limit int) Alert {
	series := metric + `{controller_namespace="a",controller="s"}`
	alert.Labels, alert.Runbook = ofCluster, alert.Name
	alert.Expr = fmt.Sprintf("max by (controller_namespace, controller) (%s) > %d", metric, limit)
	alert.Fires = Case{
		Series: map[string]string{series: fmt.Sprintf("%dx60", limit+1)}, Minute: 16, Labels: []string{"a", "s"},
	}
	alert.Quiet = Case{Series: map[string]string{series: fmt.Sprintf("%dx60", limit)}, Minute: 16}
	return alert
}

// schedulerAlerts are about slurmctld's own metrics, which Slurm has from 25.11 on.
var schedulerAlerts = []Alert{
	above(Alert{
		Name: "SlurmAccountingQueueGrows", Severity: Warning, For: "15m",
		Summary:     "slurmctld of " + clusterName + " has {{ $value }} records for slurmdbd",
		Description: "slurmdbd or its database is down or slow; records are lost when the queue is full (MaxDBDMsgs).",
	}, "slurm_slurmdbd_queue_size", 5000),
	above(Alert{
		Name: "SlurmAgentQueueGrows", Severity: Warning, For: "15m",
		Summary:     "slurmctld of " + clusterName + " has {{ $value }} messages that nodes do not take",
		Description: "Starts and ends of jobs are delayed, usually because many nodes do not answer.",
	}, "slurm_agent_queue_size", 1000),
	above(Alert{
		Name: "SlurmServerThreads", Severity: Warning, For: "10m",
		Summary:     "slurmctld of " + clusterName + " serves {{ $value }} requests at once",
		Description: "It serves at most 256; more wait or time out. `sdiag` shows who sends them.",
	}, "slurm_server_thread_cnt", 200),
	above(Alert{
		Name: "SlurmSchedulerSlow", Severity: Warning, For: "15m",
		Summary:     "A scheduling cycle of " + clusterName + " takes {{ $value }} microseconds",
		Description: "Jobs start late and commands are slow: slurmctld holds locks for that long.",
	}, "slurm_sched_mean_cycle", 5_000_000),
}
