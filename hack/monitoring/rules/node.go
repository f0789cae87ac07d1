package rules

import "maps"

// ofNodeSet are the labels of a NodeSet.
var ofNodeSet = []string{"nodeset_namespace", "nodeset"}

const (
	clusterName = "{{ $labels.controller_namespace }}/{{ $labels.controller }}"
	nodeSetName = "{{ $labels.nodeset_namespace }}/{{ $labels.nodeset }}"
)

// byCluster returns the sum of a metric of the cluster, whichever replica of the operator leads.
func byCluster(metric, matchers string) string {
	return "sum by (controller_namespace, controller) (max by (controller_namespace, controller, state) (" + metric +
		matchers + "))"
}

// nodes returns series of Slurm nodes.
func nodes(down, idle string) map[string]string {
	const series = `slurm_operator_slurm_nodes{controller_namespace="a",controller="s",state=`
	return map[string]string{series + `"down"}`: down, series + `"idle"}`: idle}
}

// pods returns a series of pods of a NodeSet.
func pods(metric, more, values string) map[string]string {
	return map[string]string{metric + `{nodeset_namespace="a",nodeset="gpu"` + more + `}`: values}
}

// nodeAlerts are about Slurm nodes and NodeSets.
var nodeAlerts = []Alert{
	{
		Name: "SlurmNodesDown", Severity: Warning, For: "15m", Labels: ofCluster, Runbook: "NodesDown",
		Expr:        byCluster("slurm_operator_slurm_nodes", `{state="down"}`) + " > 0",
		Summary:     "{{ $value }} Slurm nodes of " + clusterName + " are down",
		Description: "No job starts on them; `sinfo -R` shows why.",
		Fires:       Case{Series: nodes("2x60", "9x60"), Minute: 16, Labels: []string{"a", "s"}},
		Quiet:       Case{Series: nodes("0x60", "9x60"), Minute: 60},
	},
	{
		Name: "SlurmManyNodesDown", Severity: Critical, For: "5m", Labels: ofCluster, Runbook: "NodesDown",
		Expr: byCluster("slurm_operator_slurm_nodes", `{state=~"down|not-responding"}`) + " / " +
			byCluster("slurm_operator_slurm_nodes", "") + " > 0.25",
		Summary:     "{{ $value | humanizePercentage }} of the Slurm nodes of " + clusterName + " are down",
		Description: "They are down or do not respond: check the network and the Kubernetes nodes.",
		Fires:       Case{Series: nodes("3x60", "7x60"), Minute: 6, Labels: []string{"a", "s"}},
		Quiet:       Case{Series: nodes("2x60", "8x60"), Minute: 60},
	},
	{
		Name: "SlurmNodeSetUnavailable", Severity: Critical, For: "10m", Labels: ofNodeSet,
		Runbook: "SlurmNodeSetUnavailable",
		Expr: `max by (nodeset_namespace, nodeset) (slurm_operator_nodeset_available_pods) == 0 and
			max by (nodeset_namespace, nodeset) (slurm_operator_nodeset_desired_pods) > 0`,
		Summary:     "No pod of NodeSet " + nodeSetName + " is available",
		Description: "No job can start on it; its condition Ready says why.",
		Fires: Case{Series: merge(pods("slurm_operator_nodeset_available_pods", "", "0x60"),
			pods("slurm_operator_nodeset_desired_pods", "", "3x60")), Minute: 11, Labels: []string{"a", "gpu"}},
		Quiet: Case{Series: merge(pods("slurm_operator_nodeset_available_pods", "", "0x60"),
			pods("slurm_operator_nodeset_desired_pods", "", "0x60")), Minute: 60},
	},
	{
		// The condition is False again while the nodes are tried again, so it is remembered for longer than that takes.
		Name: "SlurmCapacityUnavailable", Severity: Warning, For: "1m", Labels: ofObject,
		Expr: `max by (object_namespace, kind, name, reason) (max_over_time(slurm_operator_condition{kind="NodeSet",
			condition="CapacityUnavailable", status="True"}[30m]))`,
		Summary: "Slurm nodes of " + objectName + " cannot be started: {{ $labels.reason }}",
		Description: "The jobs that need them are back in the queue, and are tried again after " +
			"spec.elastic.capacityBackoff. Jobs that need fewer nodes run.",
		Fires: in("NodeSet", "CapacityUnavailable", "True", "Unschedulable", 25).lasting("1x5 _x100"),
		Quiet: in("NodeSet", "CapacityUnavailable", "True", "Unschedulable", 50).lasting("1x5 _x100"),
	},
	{
		Name: "SlurmUpdateStopped", Severity: Warning, For: "5m", Labels: ofObject,
		Expr:        condition(`kind="NodeSet", condition="UpdateInProgress", reason="UpdateStopped"`),
		Summary:     "The rollout of " + objectName + " stopped",
		Description: "Pods of the new revision do not become ready; the others keep the old revision and their jobs.",
		Fires:       in("NodeSet", "UpdateInProgress", "False", "UpdateStopped", 6),
		Quiet:       in("NodeSet", "UpdateInProgress", "True", "Updating", 60),
	},
	{
		Name: "SlurmPodsWaitForSlurm", Severity: Warning, For: "15m", Labels: ofNodeSet, Runbook: "WaitingForSlurm",
		Expr: `sum by (nodeset_namespace, nodeset) (max by (nodeset_namespace, nodeset, for)
			(slurm_operator_nodeset_waiting_pods{for=~"slurm|snapshot|identity"})) > 0`,
		Summary:     "{{ $value }} pods of NodeSet " + nodeSetName + " wait for Slurm",
		Description: "They should be deleted or replaced, and Slurm does not say whether they have jobs.",
		Fires: Case{Series: pods("slurm_operator_nodeset_waiting_pods", `,for="slurm"`, "2x60"), Minute: 16,
			Labels: []string{"a", "gpu"}},
		Quiet: Case{Series: pods("slurm_operator_nodeset_waiting_pods", `,for="jobs"`, "2x60"), Minute: 60},
	},
	{
		Name: "SlurmPodsWaitForJobs", Severity: Info, For: "1d", Labels: ofNodeSet, Runbook: "Draining",
		Expr:        `max by (nodeset_namespace, nodeset) (slurm_operator_nodeset_waiting_pods{for="jobs"}) > 0`,
		Summary:     "{{ $value }} pods of NodeSet " + nodeSetName + " have waited for their jobs for a day",
		Description: "The NodeSet names the jobs. A job without a time limit holds its pod for ever.",
		Fires: Case{
			Series: pods("slurm_operator_nodeset_waiting_pods", `,for="jobs"`, "1x150"), Step: 10, Minute: 1450,
			Labels: []string{"a", "gpu"},
		},
		Quiet: Case{
			Series: pods("slurm_operator_nodeset_waiting_pods", `,for="jobs"`, "1x140 0x10"), Step: 10, Minute: 1450,
		},
	},
	{
		Name: "SlurmNodesDrainedLong", Severity: Info, For: "1h", Labels: append(ofCluster, "cause"),
		Runbook: "SlurmNodesDrainedLong",
		Expr: `time() - max by (controller_namespace, controller, cause)
			(slurm_operator_slurm_oldest_drain_timestamp_seconds{cause=~"Other|PodCordon|KubernetesNode"}) > 3 * 86400`,
		Summary:     "A Slurm node of " + clusterName + " has been drained for {{ $value | humanizeDuration }}",
		Description: "The cause is {{ $labels.cause }}; `sinfo -R` shows the node and the reason.",
		Fires: Case{
			Series: map[string]string{drain("Other"): "-300000x120"}, Minute: 70, Labels: []string{"a", "s", "Other"},
		},
		Quiet: Case{
			Series: map[string]string{drain("Other"): "-200000x120", drain("ScaleIn"): "-300000x120"}, Minute: 70,
		},
	},
}

// drain returns the series of the oldest drain with a cause.
func drain(cause string) string {
	return `slurm_operator_slurm_oldest_drain_timestamp_seconds{controller_namespace="a",controller="s",cause="` +
		cause + `"}`
}

func merge(some, others map[string]string) map[string]string {
	maps.Copy(some, others)
	return some
}
