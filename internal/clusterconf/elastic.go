package clusterconf

import (
	"strconv"
	"time"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Record returns the records of an elastic NodeSet's Slurm nodes. They have the parameters with which other slurmds
// register.
func Record(set *slinkyv1beta1.NodeSet, node nodeconf.Node) slurmconf.Record {
	record := slurmconf.Record{NodeSet: set.Name, Parameters: node.Parameters()}
	for ordinal := range int(set.Spec.Elastic.MaxReplicas) {
		record.Nodes = append(record.Nodes, naming.WorkerHost(set, ordinal))
	}
	return record
}

// waitingGroups is how many groups of pods, one after the other, slurmctld waits for: those of other jobs may have to
// start first.
const waitingGroups = 3

// PowerSaving returns the settings of power saving for a cluster with records of elastic nodes. The operator gives up
// pods after startTimeout. slurmctld waits longer: it gives up only if the operator does not answer, or if many jobs
// wait for each other. Without an elastic NodeSet, the settings in force stay until the last record is removed.
func PowerSaving(sets []slinkyv1beta1.NodeSet, inForce slurmconf.Document) *slurmconf.PowerSaving {
	var longest time.Duration
	for i := range sets {
		if elastic := sets[i].Spec.Elastic; elastic != nil {
			longest = max(longest, waitingGroups*StartTimeout(elastic)+sets[i].Spec.RegistrationTimeout.Duration)
		}
	}
	if value, _ := inForce.Get("ResumeTimeout"); longest == 0 {
		seconds, _ := strconv.Atoi(value) // the operator wrote it
		longest = time.Duration(seconds) * time.Second
	}
	return &slurmconf.PowerSaving{ResumeTimeout: longest}
}

// StartTimeout returns how long the pods for a job may take to start.
func StartTimeout(elastic *slinkyv1beta1.NodeSetElastic) time.Duration {
	if elastic.StartTimeout.Duration == 0 {
		return defaultStart
	}
	return elastic.StartTimeout.Duration
}

// defaultStart is the default of spec.elastic.startTimeout, for objects that are not from an API server.
const defaultStart = 10 * time.Minute
