package metric

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// ofCluster returns the labels of a metric of a Slurm cluster.
func ofCluster(more ...string) []string {
	return slices.Concat([]string{"controller_namespace", "controller"}, more)
}

// ofNodeSet returns the labels of a metric of a NodeSet.
func ofNodeSet(more ...string) []string {
	return slices.Concat([]string{"nodeset_namespace", "nodeset"}, more)
}

// Metrics of Slurm clusters, from the last snapshot of the mirror. Only the leader has them.
var (
	Reachable = Definition{
		Name: "slurm_operator_slurm_reachable", Type: Gauge, Labels: ofCluster(),
		Help: "1 while slurmctld answers, otherwise 0",
	}
	Info = Definition{
		Name: "slurm_operator_slurm_info", Type: Gauge, Labels: ofCluster("version", "api_version"),
		Help: "the Slurm release and the version of its REST API; always 1",
	}
	SnapshotAge = Definition{
		Name: "slurm_operator_slurm_snapshot_age_seconds", Type: Gauge, Labels: ofCluster(),
		Help: "time since the Slurm nodes were last read; it grows while a large cluster is idle",
	}
	Nodes = Definition{
		Name: "slurm_operator_slurm_nodes", Type: Gauge, Labels: ofCluster("state"),
		Help: "Slurm nodes that slurmctld knows; each is in one state",
	}
	PartitionNodes = Definition{
		Name: "slurm_operator_slurm_partition_nodes", Type: Gauge, Labels: ofCluster("partition", "state"),
		Help: "the same by partition; a Slurm node counts in each of its partitions",
	}
	CPUs = Definition{
		Name: "slurm_operator_slurm_cpus", Type: Gauge, Labels: ofCluster("state"),
		Help: "CPUs of Slurm nodes: allocated, idle, or unavailable because their node takes no jobs",
	}
	PartitionCPUs = Definition{
		Name: "slurm_operator_slurm_partition_cpus", Type: Gauge, Labels: ofCluster("partition", "state"),
		Help: "the same by partition",
	}
	Memory = Definition{
		Name: "slurm_operator_slurm_memory_bytes", Type: Gauge, Labels: ofCluster("state"),
		Help: "memory of Slurm nodes: allocated, idle or unavailable",
	}
	GPUs = Definition{
		Name: "slurm_operator_slurm_gpus", Type: Gauge, Labels: ofCluster("state"),
		Help: "GPUs of Slurm nodes (GRES gpu): allocated, idle or unavailable",
	}
	Jobs = Definition{
		Name: "slurm_operator_slurm_jobs", Type: Gauge, Labels: ofCluster("state"),
		Help: "jobs that are pending or running",
	}
	PartitionJobs = Definition{
		Name: "slurm_operator_slurm_partition_jobs", Type: Gauge, Labels: ofCluster("partition"),
		Help: "jobs of a partition that has any, pending or with nodes; absent while the queue is partial",
	}
	PendingJobs = Definition{
		Name: "slurm_operator_slurm_pending_jobs", Type: Gauge, Labels: ofCluster("partition", "reason"),
		Help: "pending jobs by reason, in each of their partitions; tasks of an array that have not started are one job; " +
			"absent if there are none, and while the queue is partial",
	}
	QueuePartial = Definition{
		Name: "slurm_operator_slurm_queue_partial", Type: Gauge, Labels: ofCluster(),
		Help: "1 while there are too many jobs to list, so that jobs are only counted, otherwise 0",
	}
	DrainedNodes = Definition{
		Name: "slurm_operator_slurm_drained_nodes", Type: Gauge, Labels: ofCluster("cause"),
		Help: "Slurm nodes with a drain or in FAIL, with or without jobs, by cause",
	}
	OldestDrain = Definition{
		Name: "slurm_operator_slurm_oldest_drain_timestamp_seconds", Type: Gauge, Labels: ofCluster("cause"),
		Help: "when the oldest of these drains was set; absent if there is none",
	}
)

// Metrics of NodeSets.
var (
	NodeSetInfo = Definition{
		Name: "slurm_operator_nodeset_info", Type: Gauge, Labels: ofNodeSet("controller"),
		Help: "the Controller of a NodeSet, which is in the same namespace; always 1",
	}
	NodeSetNodes = Definition{
		Name: "slurm_operator_nodeset_nodes", Type: Gauge, Labels: ofNodeSet("state"),
		Help: "Slurm nodes by state: idle, allocated, down, drain; a drained node also counts under its base state",
	}
	DesiredPods = Definition{
		Name: "slurm_operator_nodeset_desired_pods", Type: Gauge, Labels: ofNodeSet(),
		Help: "pods that the NodeSet should have",
	}
	Pods = Definition{
		Name: "slurm_operator_nodeset_pods", Type: Gauge, Labels: ofNodeSet(),
		Help: "pods that exist",
	}
	ReadyPods = Definition{
		Name: "slurm_operator_nodeset_ready_pods", Type: Gauge, Labels: ofNodeSet(),
		Help: "pods that are ready",
	}
	AvailablePods = Definition{
		Name: "slurm_operator_nodeset_available_pods", Type: Gauge, Labels: ofNodeSet(),
		Help: "pods that have been ready for `spec.minReadySeconds`",
	}
	OutdatedPods = Definition{
		Name: "slurm_operator_nodeset_outdated_pods", Type: Gauge, Labels: ofNodeSet(),
		Help: "pods that are not of the current revision: what remains of a rollout",
	}
	WaitingPods = Definition{
		Name: "slurm_operator_nodeset_waiting_pods", Type: Gauge, Labels: ofNodeSet("for"),
		Help: "pods whose deletion waits, by what they wait for",
	}
	WaitEnd = Definition{
		Name: "slurm_operator_nodeset_wait_end_timestamp_seconds", Type: Gauge, Labels: ofNodeSet(),
		Help: "when the last of the jobs that pods wait for ends at the latest; absent if none is known to end",
	}
	Actions = Definition{
		Name: "slurm_operator_nodeset_actions_total", Type: Counter, Labels: []string{"action", "cause"},
		Help: "actions for NodeSets",
	}
	DrainDuration = Definition{
		Name: "slurm_operator_nodeset_drain_seconds", Type: Histogram,
		Help:    "time from the drain of a Slurm node to the deletion of its pod",
		Buckets: prometheus.ExponentialBuckets(1, 4, 10),
	}
	NodeSeconds = Definition{
		Name: "slurm_operator_nodeset_node_seconds_total", Type: Counter, Labels: ofNodeSet("use"),
		Help: "seconds that pods were on Kubernetes nodes, summed up over the pods, by use of their Slurm nodes: jobs, " +
			"idle, starting, stopping, or closed to jobs; unknown before Slurm has answered",
	}
	PowerUpDuration = Definition{
		Name: "slurm_operator_nodeset_power_up_seconds", Type: Histogram, Labels: ofNodeSet(),
		Help:    "time from the power-up of a Slurm node of an elastic NodeSet until its slurmd has registered",
		Buckets: powerUpBuckets,
	}
	PowerUpPhase = Definition{
		Name: "slurm_operator_nodeset_power_up_phase_seconds", Type: Histogram, Labels: ofNodeSet("phase"),
		Help: "the same by phase: create the pod, schedule it, start slurmd (which includes pulling images), register " +
			"with slurmctld",
		Buckets: powerUpBuckets,
	}
)

// powerUpBuckets reach from a cached image on a free Kubernetes node to a large image on a new one.
var powerUpBuckets = []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800}

// Metrics of conditions, tokens and certificates.
var (
	Condition = Definition{
		Name: "slurm_operator_condition", Type: Gauge,
		Labels: []string{"kind", "object_namespace", "name", "condition", "status", "reason"},
		Help:   "one series per condition of each object; always 1",
	}
	ConditionTransition = Definition{
		Name: "slurm_operator_condition_last_transition_timestamp_seconds", Type: Gauge,
		Labels: []string{"kind", "object_namespace", "name", "condition"},
		Help:   "when the status of a condition last changed",
	}
	TokenIssued = Definition{
		Name: "slurm_operator_token_issued_timestamp_seconds", Type: Gauge, Labels: []string{"token_namespace", "token"},
		Help: "when the JWT of a Token was signed",
	}
	TokenExpiry = Definition{
		Name: "slurm_operator_token_expiry_timestamp_seconds", Type: Gauge, Labels: []string{"token_namespace", "token"},
		Help: "when the JWT of a Token expires",
	}
	RestAPICertificateExpiry = Definition{
		Name: "slurm_operator_restapi_certificate_expiry_timestamp_seconds", Type: Gauge,
		Labels: []string{"restapi_namespace", "restapi"},
		Help:   "when the certificate expires that slurmrestd serves, generated or given; absent if it cannot be used",
	}
	CertificateExpiry = Definition{
		Name: "slurm_operator_webhook_certificate_expiry_timestamp_seconds", Type: Gauge,
		Help: "when the certificate that a webhook pod serves expires; on the webhook's metrics port",
	}
)

// Metrics of requests to slurmrestd.
var (
	Requests = Definition{
		Name: "slurm_operator_slurm_requests_total", Type: Counter, Labels: ofCluster("call", "result"),
		Help: "requests to slurmrestd",
	}
	RequestDuration = Definition{
		Name: "slurm_operator_slurm_request_duration_seconds", Type: Histogram, Labels: ofCluster("call"),
		Help:    "duration of requests to slurmrestd",
		Buckets: []float64{0.005, 0.02, 0.1, 0.5, 2, 10, 30},
	}
	ReceivedBytes = Definition{
		Name: "slurm_operator_slurm_received_bytes_total", Type: Counter, Labels: ofCluster("call"),
		Help: "bytes received from slurmrestd",
	}
)
