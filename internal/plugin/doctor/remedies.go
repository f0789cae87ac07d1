package doctor

import (
	"time"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// A remedy is what to say about a reason of a condition. The message of the condition names the details.
type remedy struct {
	severity Severity
	// after is how long the reason may last before it is a finding: it passes by itself, unless something is wrong.
	after time.Duration
	// effect is what it means for jobs and users, and advice what to do. fix is the command, with placeholders.
	effect, advice, fix string
}

const (
	runsOn  = "running jobs go on, and slurmctld keeps its last valid configuration"
	held    = "jobs run and start, and no pod that may have jobs is deleted or replaced until this is repaired"
	edit    = "kubectl --namespace {namespace} edit {kind} {name}"
	ownPods = "kubectl --namespace {namespace} get pods --selector=app.kubernetes.io/instance={name}"
)

// remedies are what to do about reasons. A reason without one is not a problem. A test checks that each reason of the
// API is in remedies or in expected.
var remedies = map[string]remedy{
	slinkyv1beta1.ReasonReconciling: {
		severity: Warning, after: 15 * time.Minute,
		effect: "the object does not match its spec yet",
		advice: "see what the operator does",
		fix:    "kubectl --namespace {namespace} events --for={kind}/{name}",
	},
	slinkyv1beta1.ReasonReconcileError: {
		severity: Error, after: 2 * time.Minute,
		effect: held,
		advice: "repair the cause in the message; the operator retries",
		fix:    "kubectl --namespace {namespace} events --for={kind}/{name}",
	},
	slinkyv1beta1.ReasonQuotaExceeded: {
		severity: Error,
		effect:   "the missing pods are not created; running jobs go on",
		advice:   "raise the quota, or ask for less in the spec",
		fix:      "kubectl --namespace {namespace} describe resourcequota,limitrange",
	},
	slinkyv1beta1.ReasonPodSecurity: {
		severity: Error,
		effect:   "the missing pods are not created; running jobs go on",
		advice:   "allow what slurmd needs in the namespace",
		fix:      "kubectl label --overwrite namespace {namespace} pod-security.kubernetes.io/enforce=privileged",
	},
	slinkyv1beta1.ReasonInvalidSpec: {
		severity: Error,
		effect:   runsOn,
		advice:   "correct the field in the message",
		fix:      edit,
	},
	slinkyv1beta1.ReasonReferenceNotFound: {
		severity: Error,
		effect:   runsOn,
		advice:   "create the object in the message, or correct its name in the spec",
		fix:      edit,
	},
	slinkyv1beta1.ReasonControllerNotFound: {
		severity: Error,
		effect:   "the object has no Slurm cluster, so no pod is created or deleted for it",
		advice: "create the Controller; controllerRef cannot be changed, so an object with a wrong name is " +
			"created again",
		fix: "kubectl --namespace {namespace} get controllers",
	},
	slinkyv1beta1.ReasonControllerNotReady: {
		severity: Warning, after: 15 * time.Minute,
		effect: "the object waits for its Slurm cluster",
		advice: "repair the Controller first",
		fix:    "kubectl slurm --namespace {namespace} doctor {controller}",
	},
	slinkyv1beta1.ReasonPodsNotReady: {
		severity: Warning, after: 15 * time.Minute,
		effect: "fewer pods serve than desired",
		advice: "see what the pods wait for",
		fix:    ownPods,
	},
	slinkyv1beta1.ReasonPodsFailing: {
		severity: Error,
		effect:   "the failing pods run no jobs; others are not affected",
		advice:   "repair the cause in the message",
		fix:      ownPods,
	},
	slinkyv1beta1.ReasonNotServing: {
		severity: Error, after: 15 * time.Minute,
		effect: "users cannot use it",
		advice: "the condition Ready says why",
		fix:    "kubectl --namespace {namespace} describe {kind} {name}",
	},

	slinkyv1beta1.ReasonConnecting: {
		severity: Warning, after: 5 * time.Minute,
		effect: held,
		advice: "check the pods of slurmrestd and slurmctld",
		fix:    "kubectl --namespace {namespace} get pods --selector='app.kubernetes.io/name in (slurmctld,slurmrestd)'",
	},
	slinkyv1beta1.ReasonNoRestAPI: {
		severity: Error,
		effect:   held,
		advice:   "create a RestApi for the Controller",
		fix: `echo '{"apiVersion":"slinky.slurm.net/v1beta1","kind":"RestApi","metadata":{"name":"{controller}",` +
			`"namespace":"{namespace}"},"spec":{"controllerRef":{"name":"{controller}"}}}' | kubectl apply --filename=-`,
	},
	slinkyv1beta1.ReasonEndpointNotVerified: {
		severity: Error,
		effect:   held,
		advice:   "delete the Service in the message; the operator creates it again",
		fix:      "kubectl --namespace {namespace} get services --selector=app.kubernetes.io/name=slurmrestd",
	},
	slinkyv1beta1.ReasonCertificateInvalid: {
		severity: Error,
		effect:   held,
		advice:   "correct the Secret in the message; without spec.tls.certificateRef, delete it, and the operator makes another",
		fix:      "kubectl --namespace {namespace} get secrets --field-selector=type=kubernetes.io/tls",
	},
	slinkyv1beta1.ReasonRestAPIUnreachable: {
		severity: Error, after: 2 * time.Minute,
		effect: held,
		advice: "check the pods of slurmrestd, and that NetworkPolicies let the operator reach them",
		fix:    "kubectl --namespace {namespace} get pods --selector=app.kubernetes.io/name=slurmrestd",
	},
	slinkyv1beta1.ReasonSlurmctldDown: {
		severity: Error, after: 2 * time.Minute,
		effect: "running jobs go on, no job starts or can be submitted, and no pod with jobs is deleted",
		advice: "check slurmctld",
		fix:    "kubectl slurm --namespace {namespace} logs --controller {controller} --daemon slurmctld --tail 50",
	},
	slinkyv1beta1.ReasonAuthenticationFailed: {
		severity: Error,
		effect:   held,
		advice:   "use the JWT key that slurmctld runs with, and synchronize the clocks",
		fix:      "kubectl --namespace {namespace} describe controller {controller}",
	},
	slinkyv1beta1.ReasonUnsupportedVersion: {
		severity: Error,
		effect:   held,
		advice:   "use images of Slurm 24.11 or later",
		fix:      "kubectl --namespace {namespace} edit restapi",
	},

	slinkyv1beta1.ReasonTrying: {
		severity: Warning, after: 15 * time.Minute,
		effect: runsOn,
		advice: "see why the validation run does not end",
		fix:    "kubectl --namespace {namespace} get pods --selector=app.kubernetes.io/name=slurmctld-trial",
	},
	slinkyv1beta1.ReasonApplying: {
		severity: Warning, after: 15 * time.Minute,
		effect: runsOn,
		advice: "see what the agent next to slurmctld reports",
		fix:    "kubectl --namespace {namespace} logs {name}-controller-0 --container=reconfigure --tail=20",
	},
	slinkyv1beta1.ReasonRefused: {
		severity: Error,
		effect:   runsOn,
		advice:   "correct the line in the message",
		fix:      edit,
	},
	slinkyv1beta1.ReasonNodeSetLeftOut: {
		severity: Error,
		effect:   "the NodeSets in the message keep their previous partition and GRES; all others are not affected",
		advice:   "correct the NodeSet in the message",
		fix:      "kubectl --namespace {namespace} edit nodeset",
	},
	slinkyv1beta1.ReasonTrialFailed: {
		severity: Error,
		effect:   runsOn,
		advice:   "repair what keeps the validation pod from starting: an image, a quota, or a scheduling problem",
		fix:      "kubectl --namespace {namespace} describe pods --selector=app.kubernetes.io/name=slurmctld-trial",
	},
	slinkyv1beta1.ReasonClusterNameTooLong: {
		severity: Error,
		effect:   "slurmctld does not start",
		advice: "delete the Controller, of which nothing runs yet, and create it with spec.clusterName: that cannot be " +
			"added later",
		fix: "kubectl --namespace {namespace} get controller {name} --output=yaml",
	},
	slinkyv1beta1.ReasonKeyMismatch: {
		severity: Error,
		effect:   "daemons with different keys do not trust each other",
		advice:   "restore the old key, or use one key for Controller and Accounting",
		fix:      edit,
	},
	slinkyv1beta1.ReasonStateLost: {
		severity: Error,
		effect:   "no slurmctld is started without its saved state: it would kill the running jobs",
		advice:   "restore the PVC from a backup, as the documentation describes",
		fix:      "kubectl --namespace {namespace} get persistentvolumeclaims",
	},
	slinkyv1beta1.ReasonStateInUse: {
		severity: Error,
		effect:   "slurmctld stays as it is while jobs run",
		advice:   "put the old value back, or wait until no job runs",
		fix:      edit,
	},
	slinkyv1beta1.ReasonStateBeingDeleted: {
		severity: Error,
		effect:   "the saved state is deleted with slurmctld's pod, and with it all jobs",
		advice:   "back up the state now, while slurmctld runs",
		fix:      "kubectl --namespace {namespace} get persistentvolumeclaims",
	},
	slinkyv1beta1.ReasonIncompatibleRelease: {
		severity: Error,
		effect:   "the daemon runs as before; no change of the spec takes effect",
		advice:   "change the image as the message says",
		fix:      edit,
	},
	slinkyv1beta1.ReasonNotTakenOver: {
		severity: Warning,
		effect:   "the cluster runs as the other operator left it",
		advice:   "read the documentation, then let this operator take it over as the message says",
		fix:      "kubectl --namespace {namespace} describe controller {name}",
	},
	slinkyv1beta1.ReasonTakingOver: {
		severity: Warning, after: 24 * time.Hour,
		effect: "jobs run on",
		advice: "see which pods are left",
		fix:    "kubectl --namespace {namespace} get pods",
	},
	slinkyv1beta1.ReasonAccountingNotReady: {
		severity: Warning, after: 5 * time.Minute,
		effect: "slurmctld caches accounting records, and a new one does not start without slurmdbd",
		advice: "repair the Accounting first",
		fix:    "kubectl --namespace {namespace} describe accountings",
	},

	slinkyv1beta1.ReasonDatabaseUnreachable: {
		severity: Error,
		effect: "jobs run, and slurmctld keeps their records until slurmdbd is back; sacct and new " +
			"associations do not work",
		advice: "start the database, or correct spec.storageConfig",
		fix:    edit,
	},
	slinkyv1beta1.ReasonDatabaseAccessDenied: {
		severity: Error,
		effect: "jobs run, and slurmctld keeps their records until slurmdbd is back; sacct and new " +
			"associations do not work",
		advice: "correct the user or the password in spec.storageConfig and its Secret",
		fix:    edit,
	},
	slinkyv1beta1.ReasonConvertingDatabase: {
		severity: Warning, after: time.Hour,
		effect: "jobs run, and slurmctld keeps their records until slurmdbd has converted its database; sacct and new " +
			"associations do not work",
		advice: "wait, and do not delete slurmdbd's pod; see in its log how far it is",
		fix:    "kubectl --namespace {namespace} logs {name}-accounting-0 --container=slurmdbd --tail=20",
	},

	slinkyv1beta1.ReasonScalingOut: {
		severity: Warning, after: 30 * time.Minute,
		effect: "the NodeSet has fewer nodes than desired",
		advice: "see what the pods wait for",
		fix:    ownPods,
	},
	slinkyv1beta1.ReasonWaitingForSlurm: {
		severity: Warning, after: 5 * time.Minute,
		effect: held,
		advice: "repair the connection to Slurm",
		fix:    "kubectl slurm --namespace {namespace} doctor {controller}",
	},
	slinkyv1beta1.ReasonUpdateOnDelete: {
		severity: Notice,
		effect:   "pods keep their older revision until they are deleted",
		advice:   "delete pods whose Slurm nodes are drained",
		fix:      ownPods,
	},
	slinkyv1beta1.ReasonUpdateStopped: {
		severity: Error,
		effect:   "the remaining pods keep their older revision, with their jobs",
		advice:   "correct the spec, or put the previous one back",
		fix:      edit,
	},
	slinkyv1beta1.ReasonNotRegistered: {
		severity: Error,
		effect:   "the nodes in the message get no jobs",
		advice:   "see what slurmd says",
		fix:      "kubectl slurm --namespace {namespace} logs --controller {controller} --daemon slurmd --tail 20",
	},
	slinkyv1beta1.ReasonUnschedulable: {
		severity: Warning,
		effect:   "the job that needed the nodes is back in the queue; smaller jobs run",
		advice:   "add Kubernetes nodes, or wait for the next try; spec.elastic.startTimeout must be longer than an autoscaler takes",
		fix:      "kubectl --namespace {namespace} get events --field-selector=reason=FailedScheduling",
	},
	slinkyv1beta1.ReasonStartTimeout: {
		severity: Warning,
		effect:   "the job that needed the nodes is back in the queue",
		advice:   "correct what the events and logs of the pods name, or increase spec.elastic.startTimeout",
		fix:      "kubectl --namespace {namespace} get events --field-selector=involvedObject.kind=Pod",
	},
	slinkyv1beta1.ReasonNodesDown: {
		severity: Error,
		effect:   "the nodes in the message get no jobs",
		advice:   "see why, and resume them",
		fix:      "kubectl slurm --namespace {namespace} --controller {controller} -- sinfo --list-reasons",
	},
	slinkyv1beta1.ReasonTopologyRefused: {
		severity: Warning,
		effect:   "jobs are placed without the topology of the nodes in the message",
		advice:   "correct the annotation or the labels of the Kubernetes node, or topology.yaml",
		fix:      edit,
	},

	slinkyv1beta1.ReasonExpired: {
		severity: Error,
		effect:   "users of the token are refused",
		advice:   "let the operator renew it",
		fix: "kubectl --namespace {namespace} patch token {name} --type=merge " +
			"--patch='{\"spec\":{\"refresh\":true}}'",
	},
	slinkyv1beta1.ReasonForbiddenByPolicy: {
		severity: Error,
		effect:   "there is no token",
		advice:   "choose another user or a shorter lifetime, or change spec.tokenPolicy of the Controller in the message",
		fix:      edit,
	},
	slinkyv1beta1.ReasonSecretConflict: {
		severity: Error,
		effect:   "there is no token",
		advice:   "delete the Secret in the message, or choose another in spec.secretRef",
		fix:      edit,
	},
}
