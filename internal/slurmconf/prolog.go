package slurmconf

import "strings"

// contain is the flag with which each job has a step for processes from outside.
const prologFlags, contain = "PrologFlags", "Contain"

// prologAtAllocation are the flags with which slurmctld starts a job's prolog on all its nodes when it allocates them.
var prologAtAllocation = []string{"Alloc", contain, "DeferBatch", "ForceRequeueOnFail", "NoHold", "RunInJob", "X11"}

// HasPrologAtAllocation reports whether slurmctld starts the prolog of a job on all its nodes when it allocates them.
// slurmd then waits for that before it starts the job: if the job was allocated without a prolog, slurmd gives up after
// some seconds, and Slurm requeues and holds the job, even if its other nodes have worked for days, and drains the
// node.
func HasPrologAtAllocation(document Document) bool {
	return hasPrologFlag(document, prologAtAllocation)
}

// HasExternStep reports whether each job has a step for processes from outside, such as sshd sessions.
func HasExternStep(document Document) bool { return hasPrologFlag(document, []string{contain, "X11"}) }

func hasPrologFlag(document Document, flags []string) bool {
	value, _ := document.Get(prologFlags)
	for flag := range strings.SplitSeq(value, ",") {
		if contains(flags, flag) {
			return true
		}
	}
	return false
}
