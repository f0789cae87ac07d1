package v1beta1

// Condition types of every resource type. They are always present, carry observedGeneration, and read as kstatus expects: an
// object is current when Ready is True for the latest generation.
const (
	// ConditionReady is True when the object does what its spec says, for the latest generation. It is False while
	// something is still being done; its reason and message are the answer to "and if not, why".
	ConditionReady = "Ready"
	// ConditionAvailable is True when the object serves its users now, even if it is not as its spec says: a slurmctld whose
	// changed configuration was refused is available and not ready.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the operator is working towards the spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when something is wrong that does not recover by itself soon; its message names the next
	// human action.
	ConditionDegraded = "Degraded"
)

// Condition types of single resource types.
const (
	// ConditionSlurmReachable, on Controller and NodeSet, is True when the operator talks with slurmctld. While it is
	// not, nothing is done that could cost a job.
	ConditionSlurmReachable = "SlurmReachable"
	// ConditionConfigurationApplied, on Controller, is True when the running slurmctld uses the latest configuration, as
	// read back from it.
	ConditionConfigurationApplied = "ConfigurationApplied"
	// ConditionDatabaseReachable, on Accounting, is True when slurmdbd has its database.
	ConditionDatabaseReachable = "DatabaseReachable"
	// ConditionScaledIn, on NodeSet, is True when no pod exists beyond the desired ones; False while their Slurm nodes
	// drain, with the jobs that are waited for in the message.
	ConditionScaledIn = "ScaledIn"
	// ConditionUpdateInProgress, on NodeSet, is True while pods of an older revision are being replaced.
	ConditionUpdateInProgress = "UpdateInProgress"
	// ConditionTopologyApplied, on NodeSet, is True when Slurm has the nodes where the annotations and labels of their
	// Kubernetes nodes say that they are.
	ConditionTopologyApplied = "TopologyApplied"
)

// Reasons that any condition may give.
const (
	// ReasonAsExpected says that all is as the spec says.
	ReasonAsExpected = "AsExpected"
	// ReasonServing says that the object serves its users.
	ReasonServing = "Serving"
	// ReasonNotServing says that it does not; the message of Ready says why.
	ReasonNotServing = "NotServing"
	// ReasonReconciling says that the operator is at work and nothing is wrong.
	ReasonReconciling = "Reconciling"
	// ReasonReconcileError says that an attempt failed and is being repeated.
	ReasonReconcileError = "ReconcileError"
	// ReasonDeleting says that the object is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonQuotaExceeded says that a ResourceQuota or a LimitRange of the namespace refuses a pod; the message names it.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonInvalidSpec says that the spec passed the API server but cannot be carried out; the message says which field.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonPodTemplateInvalid says that Kubernetes refused a pod made from the template.
	ReasonPodTemplateInvalid = "PodTemplateInvalid"
	// ReasonReferenceNotFound says that a Secret, ConfigMap or object that the spec names does not exist, or lacks the
	// named key.
	ReasonReferenceNotFound = "ReferenceNotFound"
	// ReasonControllerNotFound says that the Controller in controllerRef does not exist.
	ReasonControllerNotFound = "ControllerNotFound"
	// ReasonControllerNotReady says that the Controller in controllerRef is not ready.
	ReasonControllerNotReady = "ControllerNotReady"
	// ReasonPodsNotReady says that fewer pods are ready than should be.
	ReasonPodsNotReady = "PodsNotReady"
	// ReasonPodsFailing says that pods fail again and again, or cannot be scheduled.
	ReasonPodsFailing = "PodsFailing"
	// ReasonExternal says that the daemon runs outside this operator.
	ReasonExternal = "External"
)

// Reasons of conditions about the connection to Slurm.
const (
	// ReasonConnected says that slurmctld answers.
	ReasonConnected = "Connected"
	// ReasonConnecting says that no answer has come yet since the connection was set up.
	ReasonConnecting = "Connecting"
	// ReasonNoRestAPI says that no RestApi refers to the Controller, so the operator cannot talk with Slurm.
	ReasonNoRestAPI = "NoRestApi"
	// ReasonRestAPIUnreachable says that slurmrestd does not answer.
	ReasonRestAPIUnreachable = "RestApiUnreachable"
	// ReasonSlurmctldDown says that slurmrestd answers but slurmctld does not.
	ReasonSlurmctldDown = "SlurmctldDown"
	// ReasonAuthenticationFailed says that Slurm refuses the operator's token.
	ReasonAuthenticationFailed = "AuthenticationFailed"
	// ReasonUnsupportedVersion says that slurmrestd speaks no API version that the operator knows.
	ReasonUnsupportedVersion = "UnsupportedVersion"
)

// Reasons of conditions of a Controller.
const (
	// ReasonApplied says that the running slurmctld uses the latest configuration.
	ReasonApplied = "Applied"
	// ReasonTrying says that a changed configuration is being validated on a throwaway slurmctld.
	ReasonTrying = "Trying"
	// ReasonApplying says that a changed configuration is on its way to the running slurmctld.
	ReasonApplying = "Applying"
	// ReasonRefused says that slurmctld refused a changed configuration in the validation run; the message says which line. The
	// cluster keeps running on the last good one.
	ReasonRefused = "Refused"
	// ReasonNodeSetLeftOut says that the configuration is in force without what some NodeSets ask for: the message names
	// them and what to change. What they had in force before stays in force.
	ReasonNodeSetLeftOut = "NodeSetLeftOut"
	// ReasonTrialFailed says that the validation run itself could not be done.
	ReasonTrialFailed = "TrialFailed"
	// ReasonClusterNameTooLong says that <namespace>_<name> has more than 40 characters; set spec.clusterName.
	ReasonClusterNameTooLong = "ClusterNameTooLong"
	// ReasonKeyMismatch says that Controller and Accounting have different keys.
	ReasonKeyMismatch = "KeyMismatch"
	// ReasonStateLost says that the PVC with slurmctld's saved state is gone, and that no slurmctld is started without it.
	ReasonStateLost = "StateLost"
	// ReasonStateInUse says that slurmctld is not moved away from its saved state while jobs run.
	ReasonStateInUse = "StateInUse"
	// ReasonStateBeingDeleted says that the PVC with slurmctld's saved state is removed when slurmctld's pod terminates.
	ReasonStateBeingDeleted = "StateBeingDeleted"
	// ReasonAccountingNotReady says that the Accounting in accountingRef is not ready.
	ReasonAccountingNotReady = "AccountingNotReady"
)

// Reasons of conditions of an Accounting.
const (
	// ReasonDatabaseUnreachable says that slurmdbd cannot connect to the database server.
	ReasonDatabaseUnreachable = "DatabaseUnreachable"
	// ReasonDatabaseAccessDenied says that the database server refuses the user or the password.
	ReasonDatabaseAccessDenied = "DatabaseAccessDenied"
)

// Reasons of conditions of a NodeSet.
const (
	// ReasonScalingOut says that pods are being created.
	ReasonScalingOut = "ScalingOut"
	// ReasonScalingIn says that pods are being deleted.
	ReasonScalingIn = "ScalingIn"
	// ReasonDraining says that pods are to be deleted and their Slurm nodes still have jobs.
	ReasonDraining = "Draining"
	// ReasonWaitingForSlurm says that pods are to be deleted or replaced, and Slurm cannot be asked whether they have jobs.
	ReasonWaitingForSlurm = "WaitingForSlurm"
	// ReasonNoExcess says that no pod exists beyond the desired ones.
	ReasonNoExcess = "NoExcess"
	// ReasonUpdating says that pods of an older revision are being replaced.
	ReasonUpdating = "Updating"
	// ReasonUpdateScheduled says that pods of an older revision wait for the Slurm reservation.
	ReasonUpdateScheduled = "UpdateScheduled"
	// ReasonUpdateOnDelete says that pods of an older revision are replaced when they are deleted by hand.
	ReasonUpdateOnDelete = "UpdateOnDelete"
	// ReasonUpdateStopped says that pods of the new revision do not become ready, so no more are replaced.
	ReasonUpdateStopped = "UpdateStopped"
	// ReasonUpToDate says that all pods are of the current revision.
	ReasonUpToDate = "UpToDate"
	// ReasonNotRegistered says that a slurmd did not register with Slurm within spec.registrationTimeout.
	ReasonNotRegistered = "NotRegistered"
	// ReasonNodesDown says that Slurm nodes of the set are DOWN although their pods run.
	ReasonNodesDown = "NodesDown"
	// ReasonTopologyRefused says that Slurm's topologies have no such place as a Kubernetes node names.
	ReasonTopologyRefused = "TopologyRefused"
	// ReasonHostnameConflict says that another pod of the cluster already has the Slurm node name.
	ReasonHostnameConflict = "HostnameConflict"
)

// Reasons of conditions of a Token.
const (
	// ReasonIssued says that the Secret holds a valid token.
	ReasonIssued = "Issued"
	// ReasonExpired says that the token ended and is not renewed, because spec.refresh is false.
	ReasonExpired = "Expired"
	// ReasonSecretConflict says that the Secret exists and is not owned by the Token.
	ReasonSecretConflict = "SecretConflict"
)
