package slurm

import (
	"slices"
	"strings"
)

// A PendingReason is why jobs wait: Slurm's reasons, of which there are more than a hundred, reduced to a few.
type PendingReason string

// The reasons.
const (
	// PendingResources: the resources are in use.
	PendingResources PendingReason = "resources"
	// PendingPriority: other jobs are first.
	PendingPriority PendingReason = "priority"
	// PendingDependency: another job must end first.
	PendingDependency PendingReason = "dependency"
	// PendingHeld: a user or an administrator has to release the job.
	PendingHeld PendingReason = "held"
	// PendingBeginTime: the job must not start yet.
	PendingBeginTime PendingReason = "begin-time"
	// PendingLimit: a limit of a QOS, an association, a partition or an array.
	PendingLimit PendingReason = "limit"
	// PendingNodes: nodes that the job needs, or its partition, are down, drained or reserved.
	PendingNodes PendingReason = "nodes-unavailable"
	// PendingReservation: the reservation has not started.
	PendingReservation PendingReason = "reservation"
	// PendingLicenses: the licenses are in use.
	PendingLicenses PendingReason = "licenses"
	// PendingInvalid: the job does not start unless it, an account or the configuration is changed.
	PendingInvalid PendingReason = "invalid"
	// PendingOther: everything else, also a job that Slurm has not considered yet.
	PendingOther PendingReason = "other"
)

// pendingReasons are Slurm's names of reasons, by what they mean. All that begin with QOS, Assoc or Max are limits,
// unless they are listed.
var pendingReasons = map[PendingReason][]string{
	PendingResources:   {"Resources"},
	PendingPriority:    {"Priority"},
	PendingDependency:  {"Dependency"},
	PendingHeld:        {"JobHeldAdmin", "JobHeldUser", "JobHoldMaxRequeue", "JobLaunchFailure", "SystemFailure"},
	PendingBeginTime:   {"BeginTime"},
	PendingLimit:       {"JobArrayTaskLimit", "PartitionNodeLimit", "PartitionTimeLimit", "AccountingPolicy"},
	PendingNodes:       {"ReqNodeNotAvail", "NodeDown", "FrontEndDown", "PartitionDown", "PartitionInactive"},
	PendingReservation: {"Reservation"},
	PendingLicenses:    {"Licenses"},
	PendingInvalid: {
		"BadConstraints", "InvalidAccount", "InvalidQOS", "AccountNotAllowed", "QOSNotAllowed", "DependencyNeverSatisfied",
		"ReservationDeleted", "ReservationInvalid", "PartitionConfig", "DeadLine",
	},
}

// ParsePendingReason returns what Slurm's name of a reason means.
func ParsePendingReason(name string) PendingReason {
	for reason, names := range pendingReasons {
		if slices.Contains(names, name) {
			return reason
		}
	}
	for _, prefix := range []string{"QOS", "Assoc", "Max"} {
		if strings.HasPrefix(name, prefix) {
			return PendingLimit
		}
	}
	return PendingOther
}

// Waiting are the pending jobs of one partition with one reason.
type Waiting struct {
	Partition string
	Reason    PendingReason
}
