package operator

import (
	"strconv"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/metric"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// States of Slurm nodes in metrics. Each Slurm node is in one of them: the first that applies, in this order.
var nodeStates = []string{
	"down", "powered-down", "draining", "drained", "not-responding", "mixed", "allocated", "completing", "reserved",
	"idle", "unknown",
}

// nodeState returns the state of a Slurm node in metrics.
func nodeState(node *slurm.Node) string {
	switch {
	case node.State == slurm.StateDown:
		return "down"
	case node.Flags.HasAny(slurm.FlagPoweredDown | slurm.FlagPoweringDown):
		return "powered-down"
	case node.Closed() && node.Busy():
		return "draining"
	case node.Closed():
		return "drained"
	case node.Flags.Has(slurm.FlagNotResponding):
		return "not-responding"
	case node.State == slurm.StateMixed:
		return "mixed"
	case node.State == slurm.StateAllocated:
		return "allocated"
	case node.State != slurm.StateIdle:
		return "unknown"
	case node.Flags.Has(slurm.FlagCompleting):
		return "completing"
	case node.Flags.HasAny(slurm.FlagReserved | slurm.FlagMaintenance):
		return "reserved"
	default:
		return "idle"
	}
}

// takesJobs reports whether Slurm can schedule jobs on a node in a state.
func takesJobs(state string) bool {
	switch state {
	case "mixed", "allocated", "completing", "reserved", "idle":
		return true
	default:
		return false
	}
}

// otherCause is the cause of drains that the operator did not set.
const otherCause = "Other"

// drainCauses returns the causes of drains in metrics.
func drainCauses() []string {
	causes := []string{otherCause}
	for _, cause := range plan.DrainCauses() {
		causes = append(causes, string(cause))
	}
	return causes
}

// drainCause returns the cause of a Slurm node's drain, or the empty string.
func drainCause(node *slurm.Node) string {
	switch {
	case !node.Flags.HasAny(slurm.FlagDrain | slurm.FlagFail):
		return ""
	case !node.DrainedByUs():
		return otherCause
	}
	cause, _ := plan.CauseOf(node.Reason)
	return string(cause)
}

// A capacity is an amount of a resource: what jobs have, what they could get, and what is on nodes that take no jobs.
type capacity struct{ allocated, idle, unavailable int64 }

func (c *capacity) add(total, allocated int64, usable bool) {
	c.allocated += allocated
	if free := max(total-allocated, 0); usable {
		c.idle += free
	} else {
		c.unavailable += free
	}
}

func (c *capacity) send(send sender, definition metric.Definition, unit int64, labels ...string) {
	for state, amount := range map[string]int64{
		"allocated": c.allocated, "idle": c.idle, "unavailable": c.unavailable,
	} {
		send(definition, float64(amount)*float64(unit), append(labels, state)...)
	}
}

// A usage is what the Slurm nodes of a cluster or of a partition amount to.
type usage struct {
	nodes map[string]int
	cpus  capacity
}

func (u *usage) add(node *slurm.Node, state string) {
	u.nodes[state]++
	u.cpus.add(int64(node.CPUs), int64(node.AllocatedCPUs), takesJobs(state))
}

func (u *usage) send(send sender, nodes, cpus metric.Definition, labels ...string) {
	for _, state := range nodeStates {
		send(nodes, float64(u.nodes[state]), append(labels, state)...)
	}
	u.cpus.send(send, cpus, 1, labels...)
}

// mebibyte is Slurm's unit of memory.
const mebibyte = 1 << 20

// collectSnapshot sends the metrics of a cluster. Their number depends on its partitions, and not on its nodes or jobs.
func collectSnapshot(snapshot *slurm.Snapshot, send sender) {
	all := &usage{nodes: map[string]int{}}
	partitions := map[string]*usage{}
	var memory, gpus capacity
	for _, node := range snapshot.Nodes {
		state := nodeState(node)
		all.add(node, state)
		memory.add(node.Memory, node.AllocatedMemory, takesJobs(state))
		gpus.add(countGPUs(node.GRES), countGPUs(node.GRESUsed), takesJobs(state))
		for _, name := range node.Partitions {
			partition, known := partitions[name]
			if !known {
				partition = &usage{nodes: map[string]int{}}
				partitions[name] = partition
			}
			partition.add(node, state)
		}
	}
	all.send(send, metric.Nodes, metric.CPUs)
	memory.send(send, metric.Memory, mebibyte)
	gpus.send(send, metric.GPUs, 1)
	for name, partition := range partitions {
		partition.send(send, metric.PartitionNodes, metric.PartitionCPUs, name)
	}
	send(metric.Jobs, float64(snapshot.Pending), "pending")
	send(metric.Jobs, float64(snapshot.Running), "running")
	send(metric.QueuePartial, boolean(snapshot.Partial))
	for name, jobs := range snapshot.Partitions {
		send(metric.PartitionJobs, float64(jobs), name)
	}
	for waiting, jobs := range snapshot.Waiting {
		send(metric.PendingJobs, float64(jobs), waiting.Partition, string(waiting.Reason))
	}
	collectDrains(snapshot, send)
}

func collectDrains(snapshot *slurm.Snapshot, send sender) {
	nodes, oldest := map[string]int{}, map[string]time.Time{}
	for _, node := range snapshot.Nodes {
		cause := drainCause(node)
		if cause == "" {
			continue
		}
		nodes[cause]++
		if before, known := oldest[cause]; !node.ReasonAt.IsZero() && (!known || node.ReasonAt.Before(before)) {
			oldest[cause] = node.ReasonAt
		}
	}
	for _, cause := range drainCauses() {
		send(metric.DrainedNodes, float64(nodes[cause]), cause)
		if since, known := oldest[cause]; known {
			send(metric.OldestDrain, float64(since.Unix()), cause)
		}
	}
}

// countGPUs returns the number of GPUs in a list of GRES, such as gpu:a100:8(S:0-1),shard:16.
func countGPUs(list string) int64 {
	total, depth := int64(0), 0
	plain := strings.Map(func(char rune) rune { // the lists in parentheses have commas too
		switch {
		case char == '(':
			depth++
			return -1
		case char == ')':
			depth--
			return -1
		case depth > 0:
			return -1
		}
		return char
	}, list)
	for entry := range strings.SplitSeq(plain, ",") {
		name, rest, _ := strings.Cut(entry, ":")
		if name != "gpu" {
			continue
		}
		if count, err := strconv.ParseInt(rest[strings.LastIndexByte(rest, ':')+1:], 10, 64); err == nil {
			total += count
		}
	}
	return total
}
