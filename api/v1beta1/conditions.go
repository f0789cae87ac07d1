package v1beta1

// Condition types of every resource type. They are always present, have observedGeneration, and follow kstatus: an
// object is current when Ready is True for the latest generation.
const (
	// ConditionReady is True when the object matches its spec, for the latest generation. It is False while the
	// operator is still working on it; its reason and message say why.
	ConditionReady = "Ready"
	// ConditionAvailable is True when the object serves its users now, even if it does not match its spec: a slurmctld
	// whose changed configuration was refused is available but not ready.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the operator is working towards the spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when there is a problem that does not resolve itself soon; its message says what the
	// user must do.
	ConditionDegraded = "Degraded"
)

// Condition types of specific resource types.
const (
	// ConditionSlurmReachable, on Controller and NodeSet, is True when the operator can reach slurmctld. While it is
	// not, the operator does nothing that could kill a job.
	ConditionSlurmReachable = "SlurmReachable"
	// ConditionConfigurationApplied, on Controller, is True when the running slurmctld reports that it uses the latest
	// configuration.
	ConditionConfigurationApplied = "ConfigurationApplied"
	// ConditionDatabaseReachable, on Accounting, is True when slurmdbd can reach its database.
	ConditionDatabaseReachable = "DatabaseReachable"
	// ConditionScaledIn, on NodeSet, is True when there are no excess pods. It is False while the Slurm nodes of excess
	// pods drain; the message lists the jobs that the operator waits for.
	ConditionScaledIn = "ScaledIn"
	// ConditionUpdateInProgress, on NodeSet, is True while pods of an older revision are being replaced.
	ConditionUpdateInProgress = "UpdateInProgress"
	// ConditionTopologyApplied, on NodeSet, is True when the Slurm nodes have the topology that the annotations and
	// labels of their Kubernetes nodes specify.
	ConditionTopologyApplied = "TopologyApplied"
	// ConditionCapacityUnavailable, on an elastic NodeSet, is True while Slurm nodes are closed to jobs because their
	// pods could not be scheduled, or did not start. The message says how many, and when they are tried again.
	ConditionCapacityUnavailable = "CapacityUnavailable"
)

// Reasons of any condition.
const (
	// ReasonAsExpected means that the object matches its spec.
	ReasonAsExpected = "AsExpected"
	// ReasonServing means that the object serves its users.
	ReasonServing = "Serving"
	// ReasonNotServing means that the object does not serve its users; the message of Ready says why.
	ReasonNotServing = "NotServing"
	// ReasonReconciling means that the operator is working towards the spec and nothing is wrong.
	ReasonReconciling = "Reconciling"
	// ReasonReconcileError means that reconciling failed and is being retried.
	ReasonReconcileError = "ReconcileError"
	// ReasonDeleting means that the object is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonQuotaExceeded means that a ResourceQuota or LimitRange of the namespace forbids a pod; the message names
	// it.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonPodSecurity means that the Pod Security level of the namespace forbids a pod; the message names both.
	ReasonPodSecurity = "PodSecurity"
	// ReasonInvalidSpec means that the API server accepted the spec but the operator cannot apply it; the message names
	// the field.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonReferenceNotFound means that a Secret, ConfigMap or other object that the spec refers to does not exist, or
	// lacks the key.
	ReasonReferenceNotFound = "ReferenceNotFound"
	// ReasonCertificateInvalid means that the certificate of slurmrestd cannot be used, so that there is no connection.
	ReasonCertificateInvalid = "CertificateInvalid"
	// ReasonControllerNotFound means that the Controller in controllerRef does not exist.
	ReasonControllerNotFound = "ControllerNotFound"
	// ReasonControllerNotReady means that the Controller in controllerRef is not ready.
	ReasonControllerNotReady = "ControllerNotReady"
	// ReasonPodsNotReady means that fewer pods are ready than desired.
	ReasonPodsNotReady = "PodsNotReady"
	// ReasonPodsFailing means that pods fail repeatedly or cannot be scheduled.
	ReasonPodsFailing = "PodsFailing"
	// ReasonExternal means that this operator does not run the daemon.
	ReasonExternal = "External"
)

// Reasons of conditions about the connection to Slurm.
const (
	// ReasonConnected means that slurmctld answers.
	ReasonConnected = "Connected"
	// ReasonConnecting means that slurmctld has not answered yet since the connection was set up.
	ReasonConnecting = "Connecting"
	// ReasonNoRestAPI means that no RestApi refers to the Controller, so the operator cannot reach Slurm.
	ReasonNoRestAPI = "NoRestApi"
	// ReasonEndpointNotVerified means that the Service of the RestApi is not its own or has no cluster IP, so that the
	// operator sends no token to it.
	ReasonEndpointNotVerified = "EndpointNotVerified"
	// ReasonRestAPIUnreachable means that slurmrestd does not answer.
	ReasonRestAPIUnreachable = "RestApiUnreachable"
	// ReasonSlurmctldDown means that slurmrestd answers but slurmctld does not.
	ReasonSlurmctldDown = "SlurmctldDown"
	// ReasonAuthenticationFailed means that Slurm rejects the operator's token.
	ReasonAuthenticationFailed = "AuthenticationFailed"
	// ReasonUnsupportedVersion means that slurmrestd supports none of the operator's API versions.
	ReasonUnsupportedVersion = "UnsupportedVersion"
)

// Reasons of conditions of a Controller.
const (
	// ReasonApplied means that the running slurmctld uses the latest configuration.
	ReasonApplied = "Applied"
	// ReasonTrying means that a changed configuration is being validated on a throwaway slurmctld.
	ReasonTrying = "Trying"
	// ReasonApplying means that a changed configuration is being rolled out to the running slurmctld.
	ReasonApplying = "Applying"
	// ReasonRefused means that slurmctld refused a changed configuration in the validation run; the message names the
	// line. The cluster keeps running with the last good configuration.
	ReasonRefused = "Refused"
	// ReasonNodeSetLeftOut means that the configuration is applied without the changes of some NodeSets: the message
	// names them and what to correct. Their previous settings stay in effect.
	ReasonNodeSetLeftOut = "NodeSetLeftOut"
	// ReasonTrialFailed means that the validation run itself failed.
	ReasonTrialFailed = "TrialFailed"
	// ReasonClusterNameTooLong means that <namespace>_<name> has more than 40 characters; set spec.clusterName.
	ReasonClusterNameTooLong = "ClusterNameTooLong"
	// ReasonKeyMismatch means that Controller and Accounting have different keys.
	ReasonKeyMismatch = "KeyMismatch"
	// ReasonStateLost means that the PVC with slurmctld's saved state no longer exists, and that no slurmctld is
	// started without it.
	ReasonStateLost = "StateLost"
	// ReasonStateInUse means that slurmctld is not separated from its saved state while jobs run.
	ReasonStateInUse = "StateInUse"
	// ReasonStateBeingDeleted means that the PVC with slurmctld's saved state will be removed when slurmctld's pod
	// terminates.
	ReasonStateBeingDeleted = "StateBeingDeleted"
	// ReasonIncompatibleRelease means that slurmctld or slurmdbd is not replaced by that of another release, which could
	// not read its saved state or its database, or would not talk to the nodes.
	ReasonIncompatibleRelease = "IncompatibleRelease"
	// ReasonNotTakenOver means that another operator made the cluster, and that nothing is changed until the user asks
	// for it; the message says how.
	ReasonNotTakenOver = "NotTakenOver"
	// ReasonTakingOver means that the cluster is being taken over from another operator.
	ReasonTakingOver = "TakingOver"
	// ReasonAccountingNotReady means that the Accounting in accountingRef is not ready.
	ReasonAccountingNotReady = "AccountingNotReady"
)

// Reasons of conditions of an Accounting.
const (
	// ReasonDatabaseUnreachable means that slurmdbd cannot connect to the database server.
	ReasonDatabaseUnreachable = "DatabaseUnreachable"
	// ReasonDatabaseAccessDenied means that the database server rejects the user or the password.
	ReasonDatabaseAccessDenied = "DatabaseAccessDenied"
	// ReasonConvertingDatabase means that slurmdbd converts its database to its release, or may be doing so, and must not
	// be interrupted.
	ReasonConvertingDatabase = "ConvertingDatabase"
)

// Reasons of conditions of a NodeSet.
const (
	// ReasonScalingOut means that pods are being created.
	ReasonScalingOut = "ScalingOut"
	// ReasonScalingIn means that pods are being deleted.
	ReasonScalingIn = "ScalingIn"
	// ReasonDraining means that pods will be deleted but their Slurm nodes still have jobs.
	ReasonDraining = "Draining"
	// ReasonWaitingForSlurm means that pods will be deleted or replaced but Slurm cannot be queried for their jobs.
	ReasonWaitingForSlurm = "WaitingForSlurm"
	// ReasonNoExcess means that there are no excess pods.
	ReasonNoExcess = "NoExcess"
	// ReasonUpdating means that pods of an older revision are being replaced.
	ReasonUpdating = "Updating"
	// ReasonUpdateScheduled means that pods of an older revision wait for the Slurm reservation.
	ReasonUpdateScheduled = "UpdateScheduled"
	// ReasonUpdateOnDelete means that pods of an older revision are replaced when a user deletes them.
	ReasonUpdateOnDelete = "UpdateOnDelete"
	// ReasonUpdateStopped means that the rollout stopped because pods of the new revision do not become ready.
	ReasonUpdateStopped = "UpdateStopped"
	// ReasonUpToDate means that all pods are at the current revision.
	ReasonUpToDate = "UpToDate"
	// ReasonNotRegistered means that a slurmd did not register with Slurm within spec.registrationTimeout.
	ReasonNotRegistered = "NotRegistered"
	// ReasonNodesDown means that Slurm nodes of the NodeSet are DOWN although their pods run.
	ReasonNodesDown = "NodesDown"
	// ReasonTopologyRefused means that the position that a Kubernetes node specifies does not exist in Slurm's
	// topologies.
	ReasonTopologyRefused = "TopologyRefused"
	// ReasonUnschedulable means that Kubernetes has no room for the pods of Slurm nodes that jobs need.
	ReasonUnschedulable = "Unschedulable"
	// ReasonStartTimeout means that pods of Slurm nodes that jobs need did not start within spec.elastic.startTimeout.
	ReasonStartTimeout = "StartTimeout"
)

// Reasons of conditions of a Token.
const (
	// ReasonIssued means that the Secret holds a valid token.
	ReasonIssued = "Issued"
	// ReasonExpired means that the token expired and is not renewed because spec.refresh is false.
	ReasonExpired = "Expired"
	// ReasonSecretConflict means that the Secret exists and is not owned by the Token.
	ReasonSecretConflict = "SecretConflict"
	// ReasonForbiddenByPolicy means that spec.tokenPolicy of a Controller with the same key does not allow the Token.
	ReasonForbiddenByPolicy = "ForbiddenByPolicy"
)
