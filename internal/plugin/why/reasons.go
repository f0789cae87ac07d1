package why

import (
	"fmt"
	"regexp"
	"strings"
)

// An Explanation is Slurm's reason for a pending job in words.
type Explanation struct {
	// Meaning is what the reason means, and Starts what would start the job.
	Meaning string `json:"meaning"`
	Starts  string `json:"starts"`
	// Nodes says that the state of the partition's nodes matters.
	Nodes bool `json:"-"`
}

// partitionReturns must not make anybody open a partition for jobs that a costly change would then end.
const partitionReturns = "the partition's return. The operator closes all partitions while it makes a change that costs " +
	"running jobs, and opens them itself: kubectl slurm config diff shows such a change. Otherwise, if a person has closed " +
	"this one: kubectl slurm -- scontrol update partitionname=<partition> state=up"

// explanations are those of the reasons that 24.11 and 26.05 have, except for limits: see explainLimit. The words in
// angle brackets are replaced by those of the job.
var explanations = map[string]Explanation{
	"None": {Meaning: "Slurm has not considered it yet",
		Starts: "the next run of the scheduler, within seconds; if this lasts, see whether slurmctld is overloaded: kubectl slurm -- sdiag"},
	"Priority": {Meaning: "other jobs of the partition have a higher priority", Nodes: true,
		Starts: "its turn; compare the priorities: kubectl slurm -- squeue --partition=<partition> --states=pending --sort=-p --format='%i %Q %u'"},
	"Resources": {Meaning: "the nodes, CPUs, memory or devices that it asks for are in use", Nodes: true,
		Starts: "jobs that end, or more nodes: kubectl scale nodeset … --replicas=…"},
	"ReqNodeNotAvail": {Meaning: "nodes that it asks for are not available: drained, down or reserved", Nodes: true,
		Starts: "nodes that return to service; for each one: kubectl slurm why NODE"},
	"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions": {
		Meaning: "all nodes that could run it are down, drained, or reserved for jobs of partitions with a higher priority", Nodes: true,
		Starts: "nodes that return to service; for each one: kubectl slurm why NODE"},
	"NodeDown": {Meaning: "a node that it needs is down", Nodes: true,
		Starts: "the node's return to service: kubectl slurm why NODE"},
	"FrontEndDown": {Meaning: "no front end node is available",
		Starts: "a front end node in service"},
	"Dependency": {Meaning: "it depends on other jobs (<dependency>), which have not finished",
		Starts: "their end; to drop the dependency: kubectl slurm -- scontrol update jobid=<job> dependency="},
	"DependencyNeverSatisfied": {Meaning: "it depends on a job that did not end as required (<dependency>), so it never starts",
		Starts: "nothing; drop the dependency: kubectl slurm -- scontrol update jobid=<job> dependency=, or cancel it: kubectl slurm -- scancel <job>"},
	"BeginTime": {Meaning: "it was submitted to start later, or was requeued and waits a moment before it starts again",
		Starts: "the time; to start it now: kubectl slurm -- scontrol update jobid=<job> starttime=now"},
	"DeadLine": {Meaning: "it cannot finish before its deadline",
		Starts: "a later deadline: kubectl slurm -- scontrol update jobid=<job> deadline=…"},
	"JobHeldUser": {Meaning: "its user holds it",
		Starts: "a release: kubectl slurm -- scontrol release <job>"},
	"JobHeldAdmin": {Meaning: "an administrator holds it, or its priority is 0",
		Starts: "a release by an administrator: kubectl slurm -- scontrol release <job>"},
	"JobHoldMaxRequeue": {Meaning: "it was requeued as often as MaxBatchRequeue allows, and is held",
		Starts: "a release, after the cause was found: kubectl slurm -- scontrol release <job>"},
	"JobLaunchFailure": {Meaning: "it could not be launched, and is held",
		Starts: "a release, after the cause was found in the log of its nodes: kubectl slurm -- scontrol release <job>"},
	"launch failed requeued held": {Meaning: "it could not be launched, was requeued, and is held",
		Starts: "a release, after the cause was found in the log of its nodes: kubectl slurm -- scontrol release <job>"},
	"SystemFailure": {Meaning: "Slurm, the file system or the network failed when it started",
		Starts: "a release, after the cause was found in the log of slurmctld: kubectl slurm -- scontrol release <job>"},
	"PartitionDown":     {Meaning: "its partition <partition> is down", Starts: partitionReturns},
	"PartitionInactive": {Meaning: "its partition <partition> is inactive", Starts: partitionReturns},
	"PartitionNodeLimit": {Meaning: "it asks for more or fewer nodes than the partition <partition> allows, or than it has", Nodes: true,
		Starts: "another number of nodes, or another limit: kubectl slurm -- scontrol show partition <partition>"},
	"PartitionTimeLimit": {Meaning: "its time limit (<limit>) exceeds that of the partition <partition>",
		Starts: "a lower limit: kubectl slurm -- scontrol update jobid=<job> timelimit=…"},
	"PartitionConfig": {Meaning: "the partition <partition> cannot run what it asks for, such as too many nodes or a closed group",
		Starts: "another partition, or another request: kubectl slurm -- scontrol show partition <partition>"},
	"BadConstraints": {Meaning: "no node has what it asks for (features: <features>)", Nodes: true,
		Starts: "another request, or nodes with these features: kubectl slurm -- sinfo --format='%N %f %G %c %m'"},
	"Licenses": {Meaning: "licenses that it asks for are in use",
		Starts: "jobs that return them: kubectl slurm -- scontrol show licenses"},
	"Reservation": {Meaning: "it waits for its reservation <reservation>",
		Starts: "the start of the reservation, or free nodes in it: kubectl slurm -- scontrol show reservation <reservation>"},
	"ReservationDeleted": {Meaning: "its reservation was deleted, and it is held",
		Starts: "a release, with another reservation or none: kubectl slurm -- scontrol update jobid=<job> reservationname=; kubectl slurm -- scontrol release <job>"},
	"ReservationInvalid": {Meaning: "it cannot use the reservation that it asks for",
		Starts: "another reservation, or none: kubectl slurm -- scontrol update jobid=<job> reservationname="},
	"AccountNotAllowed": {Meaning: "the partition <partition> does not allow its account <account>",
		Starts: "another account or partition: kubectl slurm -- scontrol show partition <partition>"},
	"QOSNotAllowed": {Meaning: "its account or partition does not allow the QOS <qos>",
		Starts: "another QOS: kubectl slurm -- scontrol update jobid=<job> qos=…"},
	"InvalidAccount": {Meaning: "its account <account> does not exist, or its user is not in it",
		Starts: "an account that its user has: kubectl slurm -- sacctmgr show association user=<user>"},
	"InvalidQOS": {Meaning: "its QOS <qos> does not exist, or its user may not use it",
		Starts: "a QOS that its user has: kubectl slurm -- sacctmgr show association user=<user> format=account,qos"},
	"AccountingPolicy": {Meaning: "a limit of accounting forbids it",
		Starts: "another limit: kubectl slurm -- sacctmgr show association user=<user>"},
	"JobArrayTaskLimit": {Meaning: "as many tasks of the array run as its user allows at a time",
		Starts: "tasks that end, or a higher limit: kubectl slurm -- scontrol update jobid=<job> arraytaskthrottle=…"},
	"BurstBufferResources": {Meaning: "the burst buffer has not enough space",
		Starts: "jobs that release theirs"},
	"BurstBufferStageIn": {Meaning: "its files are being copied to the burst buffer",
		Starts: "the end of the copy"},
	"BurstBufferOperation": {Meaning: "an operation of the burst buffer failed",
		Starts: "a repair of the burst buffer, and a release: kubectl slurm -- scontrol release <job>"},
	"Cleaning": {Meaning: "it was requeued, and its previous run is being cleaned up",
		Starts: "the end of the clean-up, on all of its nodes"},
	"Prolog": {Meaning: "PrologSlurmctld runs for it",
		Starts: "the end of that script"},
	"SchedDefer": {Meaning: "Slurm defers scheduling at submission, as SchedulerParameters asks",
		Starts: "the next run of the scheduler, within seconds"},
	"FedJobLock": {Meaning: "the federation decides which cluster runs it",
		Starts: "the decision of the federation"},
	"NonZeroExitCode": {Meaning: "it ended with an exit code other than 0",
		Starts: "nothing: it has ended"},
	"TimeLimit": {Meaning: "it reached its time limit",
		Starts: "nothing: it has ended"},
	"InactiveLimit": {Meaning: "it was inactive for longer than InactiveLimit",
		Starts: "nothing: it has ended"},
	"MaxMemPerLimit": {Meaning: "it asks for more memory per CPU or node than the limit",
		Starts: "a lower request: kubectl slurm -- scontrol show config"},
	"MaxPoweredUpNodes": {Meaning: "as many nodes are powered up as the limit allows",
		Starts: "nodes that are powered down, or a higher limit"},
	"QOSUsageThreshold": {Meaning: "the usage of its association is above the threshold of the QOS <qos>",
		Starts: "less usage over time, or another QOS: kubectl slurm -- sacctmgr show qos <qos>"},
	"AssociationJobLimit": {Meaning: "its association has as many jobs as it may",
		Starts: "jobs that end: kubectl slurm -- sacctmgr show association user=<user>"},
	"AssociationResourceLimit": {Meaning: "its association uses as much as it may",
		Starts: "jobs that end: kubectl slurm -- sacctmgr show association user=<user>"},
	"AssociationTimeLimit": {Meaning: "its association has used up its time",
		Starts: "another limit: kubectl slurm -- sacctmgr show association user=<user>"},
	"QOSJobLimit": {Meaning: "the QOS <qos> has as many jobs as it may",
		Starts: "jobs that end: kubectl slurm -- sacctmgr show qos <qos>"},
	"QOSResourceLimit": {Meaning: "the QOS <qos> uses as much as it may",
		Starts: "jobs that end: kubectl slurm -- sacctmgr show qos <qos>"},
	"QOSTimeLimit": {Meaning: "the QOS <qos> has used up its time",
		Starts: "another limit: kubectl slurm -- sacctmgr show qos <qos>"},
}

// limit matches the reasons about limits of QOS and associations: whose limit, which kind, of what, and for each what.
var limit = regexp.MustCompile(`^(QOS|Assoc)?(Grp|Max|Min)` +
	`(Cpu|CPU|Mem|Memory|Node|GRES|License|Energy|BB|Billing|Jobs|Job|SubmitJobs|SubmitJob|WallDuration|Wall|Unknown)` +
	`(RunMinutes|RunMins|Minutes)?(PerJob|PerNode|PerUser|PerAccount)?(Limit|NotSatisfied)?$`)

// limited are the words for what a limit is about.
var limited = map[string]string{
	"Cpu": "CPUs", "CPU": "CPUs", "Mem": "memory", "Memory": "memory", "Node": "nodes", "GRES": "GPUs or other devices",
	"License": "licenses", "Energy": "energy", "BB": "burst buffer", "Billing": "billing units", "Jobs": "running jobs",
	"Job": "running jobs", "SubmitJobs": "jobs in the queue", "SubmitJob": "jobs in the queue", "WallDuration": "run time",
	"Wall": "run time", "Unknown": "a resource",
}

// each are the words for whom a limit counts.
var each = map[string]string{
	"PerJob": "per job", "PerNode": "per node", "PerUser": "per user", "PerAccount": "per account",
}

// explainLimit explains a reason about a limit.
func explainLimit(reason string) (Explanation, bool) {
	match := limit.FindStringSubmatch(reason)
	if match == nil {
		return Explanation{}, false
	}
	whose, show := "of the QOS <qos>", "kubectl slurm -- sacctmgr show qos <qos>"
	if match[1] == "Assoc" {
		whose, show = "of its association (account <account>, user <user>)",
			"kubectl slurm -- sacctmgr show association user=<user>"
	}
	what := limited[match[3]]
	if match[4] != "" {
		what += " over time"
	}
	per := each[match[5]]
	switch {
	case match[2] == "Min":
		return Explanation{
			Meaning: fmt.Sprintf("it asks for less than the minimum %s: %s", whose, what),
			Starts:  "a larger request, or a lower minimum: " + show,
		}, true
	case per == "per job" || per == "per node":
		return Explanation{
			Meaning: fmt.Sprintf("it asks for more than the limit %s %s: %s", per, whose, what),
			Starts:  "a smaller request, or a higher limit: " + show,
		}, true
	case per != "":
		return Explanation{
			Meaning: fmt.Sprintf("the limit %s %s is used up: %s", per, whose, what),
			Starts:  "jobs of the same " + strings.TrimPrefix(per, "per ") + " that end, or a higher limit: " + show,
		}, true
	default:
		return Explanation{
			Meaning: fmt.Sprintf("the limit %s is used up: %s", whose, what),
			Starts:  "other jobs under this limit that end, or a higher limit: " + show,
		}, true
	}
}

// explain returns Slurm's reason in words. Slurm may add details after a comma, such as the nodes that are not
// available.
func explain(reason string) (Explanation, bool) {
	plain := strings.ReplaceAll(reason, "_", " ")
	for _, known := range []string{reason, plain} {
		if found, ok := explanations[known]; ok {
			return found, true
		}
		if found, ok := explainLimit(known); ok {
			return found, true
		}
	}
	word, _, detailed := strings.Cut(plain, ",")
	if found, ok := explanations[word]; ok && detailed {
		return found, true
	}
	return Explanation{
		Meaning: fmt.Sprintf("Slurm's reason is %q", reason),
		Starts:  "see kubectl slurm -- scontrol show job <job>",
	}, false
}
