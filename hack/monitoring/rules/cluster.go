package rules

import "fmt"

// ofObject are the labels of an alert about a condition.
var ofObject = []string{"object_namespace", "kind", "name", "reason"}

// objectName is the object of such an alert.
const objectName = "{{ $labels.kind }} {{ $labels.object_namespace }}/{{ $labels.name }}"

// condition returns the query for objects with a condition; the matchers select kind, condition, status and reason.
func condition(matchers string) string {
	return "max by (object_namespace, kind, name, reason) (slurm_operator_condition{" + matchers + "})"
}

// in returns a case with one condition that stays for an hour.
func in(kind, condition, status, reason string, minute int) Case {
	series := fmt.Sprintf(
		`slurm_operator_condition{object_namespace="a",kind=%q,name="s",condition=%q,status=%q,reason=%q,instance="i"}`,
		kind, condition, status, reason)
	return Case{Series: map[string]string{series: "1x120"}, Minute: minute, Labels: []string{"a", kind, "s", reason}}
}

// lasting replaces the values of all series of a case.
func (c Case) lasting(values string) Case {
	for series := range c.Series {
		c.Series[series] = values
	}
	return c
}

// with adds a series to a case.
func (c Case) with(series, values string) Case {
	c.Series[series] = values
	return c
}

// Reasons that have their own alerts.
const (
	stateReasons  = "StateLost|StateInUse|StateBeingDeleted"
	configReasons = "Refused|TrialFailed|NodeSetLeftOut|ClusterNameTooLong|KeyMismatch|IncompatibleRelease"
	ownAlerts     = stateReasons + "|" + configReasons + "|NoRestApi|EndpointNotVerified|DatabaseUnreachable|" +
		"DatabaseAccessDenied|UpdateStopped|NodesDown"
)

// clusterAlerts are about custom resources.
var clusterAlerts = []Alert{
	{
		Name: "SlurmUnreachable", Severity: Critical, For: "1m", Labels: ofObject,
		Expr: condition(`kind="Controller", condition="SlurmReachable", status!="True"`) +
			` and on (object_namespace, name) time() - max by (object_namespace, name)
			(slurm_operator_condition_last_transition_timestamp_seconds{kind="Controller", condition="SlurmReachable"}) > 300`,
		Summary: "The operator cannot reach Slurm of " + objectName + ": {{ $labels.reason }}",
		Description: "For {{ $labels.reason }}, slurmctld or slurmrestd has not answered for five minutes. " +
			"Running jobs continue; no pod that may have jobs is deleted.",
		Fires: in("Controller", "SlurmReachable", "False", "SlurmctldDown", 8).with(
			`slurm_operator_condition_last_transition_timestamp_seconds{object_namespace="a",kind="Controller",name="s",`+
				`condition="SlurmReachable"}`, "0x120"),
		Quiet: in("Controller", "SlurmReachable", "False", "SlurmctldDown", 4).with(
			`slurm_operator_condition_last_transition_timestamp_seconds{object_namespace="a",kind="Controller",name="s",`+
				`condition="SlurmReachable"}`, "0x120"),
	},
	{
		Name: "SlurmctldUnavailable", Severity: Critical, For: "5m", Labels: ofObject,
		Expr:    condition(`kind="Controller", condition="Available", status="False"`),
		Summary: "No slurmctld of " + objectName + " is ready",
		Description: "Running jobs continue; nothing is submitted, started or cancelled. " +
			"The condition Ready of the Controller says why.",
		Fires: in("Controller", "Available", "False", "NotServing", 6),
		Quiet: in("Controller", "Available", "True", "Serving", 60),
	},
	{
		Name: "SlurmStateAtRisk", Severity: Critical, For: "1m", Labels: ofObject,
		Expr:    condition(`kind="Controller", condition="Degraded", status="True", reason=~"` + stateReasons + `"`),
		Summary: "The saved state of " + objectName + " is lost or at risk: {{ $labels.reason }}",
		Description: "With its state, slurmctld loses all jobs. Do not restart or delete its pod before you have read " +
			"the runbook.",
		Fires: in("Controller", "Degraded", "True", "StateBeingDeleted", 2),
		Quiet: in("Controller", "Degraded", "True", "Refused", 60),
	},
	{
		Name: "SlurmConfigurationHeldBack", Severity: Warning, For: "5m", Labels: ofObject,
		Expr: condition(`kind="Controller", condition="ConfigurationApplied", status="False", reason=~"` + configReasons +
			`|InvalidSpec|ReferenceNotFound"`),
		Summary: "A changed configuration of " + objectName + " is not applied: {{ $labels.reason }}",
		Description: "slurmctld runs with the last good configuration. The condition ConfigurationApplied says what to " +
			"correct.",
		Fires: in("Controller", "ConfigurationApplied", "False", "Refused", 6),
		Quiet: in("Controller", "ConfigurationApplied", "False", "Trying", 60),
	},
	{
		Name: "SlurmConfigurationNotApplied", Severity: Warning, For: "30m", Labels: ofObject,
		Expr: condition(`kind="Controller", condition="ConfigurationApplied", status="False",
			reason=~"Trying|Applying|Reconciling"`),
		Summary:     "A configuration of " + objectName + " is not applied after 30 minutes: {{ $labels.reason }}",
		Description: "The condition ConfigurationApplied says what it waits for.",
		Fires:       in("Controller", "ConfigurationApplied", "False", "Applying", 31),
		Quiet:       in("Controller", "ConfigurationApplied", "False", "Applying", 29),
	},
	{
		Name: "SlurmDatabaseUnreachable", Severity: Critical, For: "5m", Labels: ofObject,
		Expr:        condition(`kind="Accounting", condition="DatabaseReachable", status="False"`),
		Summary:     "slurmdbd of " + objectName + " has no database: {{ $labels.reason }}",
		Description: "slurmctld queues accounting records, and loses some when its queue is full.",
		Fires:       in("Accounting", "DatabaseReachable", "False", "DatabaseUnreachable", 6),
		Quiet:       in("Accounting", "DatabaseReachable", "Unknown", "Reconciling", 60),
	},
	{
		Name: "SlurmAccountingUnavailable", Severity: Critical, For: "10m", Labels: ofObject,
		Expr:        condition(`kind="Accounting", condition="Available", status="False"`),
		Summary:     "slurmdbd of " + objectName + " does not answer",
		Description: "slurmctld queues accounting records, and loses some when its queue is full.",
		Fires:       in("Accounting", "Available", "False", "NotServing", 11),
		Quiet:       in("Accounting", "Available", "Unknown", "External", 60),
	},
	{
		Name: "SlurmLoginUnavailable", Severity: Critical, For: "5m", Labels: ofObject,
		Expr:        condition(`kind="LoginSet", condition="Available", status="False"`),
		Summary:     "No login pod of " + objectName + " is ready",
		Description: "Users cannot log in. Jobs are not affected.",
		Fires:       in("LoginSet", "Available", "False", "NotServing", 6),
		Quiet:       in("LoginSet", "Available", "True", "Serving", 60),
	},
	{
		Name: "SlurmObjectDegraded", Severity: Warning, For: "15m", Labels: ofObject,
		// The own alert of IncompatibleRelease is about a condition that only Controllers have.
		Expr: condition(`condition="Degraded", status="True", reason!~"`+ownAlerts+`"`) + " or " +
			condition(`kind="Accounting", condition="Degraded", status="True", reason="IncompatibleRelease"`),
		Summary:     objectName + " is degraded: {{ $labels.reason }}",
		Description: "It does not recover by itself; the condition Ready says what to do.",
		Fires:       in("NodeSet", "Degraded", "True", "QuotaExceeded", 16),
		Quiet:       in("NodeSet", "Degraded", "True", "NodesDown", 60),
	},
	{
		Name: "SlurmObjectNotReady", Severity: Warning, For: "1h", Labels: ofObject,
		Expr: condition(`condition="Ready", status="False",
			reason=~"Reconciling|ReconcileError|PodsNotReady|ControllerNotReady|ScalingOut|ScalingIn|TakingOver"`),
		Summary:     objectName + " has not been ready for an hour: {{ $labels.reason }}",
		Description: "The condition Ready says what it waits for.",
		Fires:       in("RestApi", "Ready", "False", "PodsNotReady", 61),
		Quiet:       in("NodeSet", "Ready", "False", "Draining", 100),
	},
}
