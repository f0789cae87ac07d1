package scale

import (
	"fmt"
	"slices"
	"strings"
)

// NodeSetReport is all NodeSet results of a run, and its environment.
type NodeSetReport struct {
	Kubernetes string          `json:"kubernetes"`
	Cores      int             `json:"cores"`
	Nodes      int             `json:"nodes"`
	Results    []NodeSetResult `json:"results"`
}

// NodeSetResult is the measurement of a NodeSet and a StatefulSet of the same size.
type NodeSetResult struct {
	StatefulSet Result `json:"statefulSet"`
	NodeSet     Result `json:"nodeSet"`
	// Creation, Update and ScaleIn are the costs of these three steps.
	Creation Step `json:"creation"`
	Update   Step `json:"update"`
	ScaleIn  Step `json:"scaleIn"`
	// Idle is the cost per minute when all pods exist and nothing happens, Empty the cost without a NodeSet.
	Idle  Idle `json:"rest"`
	Empty Idle `json:"empty"`
	// Reaction is how long it takes until Kubernetes shows a change in Slurm.
	Reaction Reaction `json:"reaction"`
}

// Step is the cost of a change of a NodeSet.
type Step struct {
	// Pods is how many pods it changes.
	Pods    int     `json:"pods"`
	Seconds float64 `json:"seconds"`
	// Writes are the operator's writes.
	Writes        []Writes `json:"writes"`
	SlurmRequests int      `json:"slurmRequests"`
	// SlurmUpdates are the requests that change something.
	SlurmUpdates int     `json:"slurmUpdates"`
	SlurmBytes   int64   `json:"slurmBytes"`
	CPU          float64 `json:"cpuSeconds"`
}

// Idle is what the operator does in a minute in which nothing happens.
type Idle struct {
	Writes        float64 `json:"writesPerMinute"`
	SlurmRequests float64 `json:"slurmRequestsPerMinute"`
	SlurmBytes    float64 `json:"slurmBytesPerMinute"`
	CPU           float64 `json:"cpuSecondsPerMinute"`
	// Heap is the size of its heap objects.
	Heap int64 `json:"heapBytes"`
}

// Reaction is how long changes of single nodes took to show up, in seconds: on the pod, and in the status of the
// NodeSet.
type Reaction struct {
	Pods   []float64 `json:"podSeconds"`
	Status []float64 `json:"statusSeconds"`
}

// countedSeparately reports whether writes are counted separately from those that create pods: status and PVCs.
func (w Writes) countedSeparately() bool {
	return strings.HasSuffix(w.Resource, "/status") || w.Resource == "persistentvolumeclaims"
}

// perPod returns the operator's writes per pod, and those that are counted separately.
func perPod(writes []Writes, count int) (pods, separate float64) {
	for _, write := range writes {
		if write.User != OperatorUser {
			continue
		}
		if write.countedSeparately() {
			separate += float64(write.Requests) / float64(count)
		} else {
			pods += float64(write.Requests) / float64(count)
		}
	}
	return pods, separate
}

// heapPerPod returns the heap per pod in bytes.
func (r NodeSetResult) heapPerPod() float64 {
	return float64(r.Idle.Heap-r.Empty.Heap) / float64(r.NodeSet.Pods)
}

// String returns the figures as cells of a table.
func (i Idle) String() string {
	return fmt.Sprintf("%.1f | %.2f | %.0f | %.0f | %.1f", i.Writes, i.CPU, i.SlurmRequests, i.SlurmBytes/1e3,
		float64(i.Heap)/1e6)
}

// percentile returns a percentile of values, or 0 without any.
func percentile(values []float64, percent int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)*percent+99)/100-1]
}

// Markdown renders the report as tables: first a comparison with a StatefulSet, then the figures that only a NodeSet
// has.
func (r NodeSetReport) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Kubernetes %s, %d cores, %d simulated nodes. Times in seconds, writes per pod.\n\n", r.Kubernetes,
		r.Cores, r.Nodes)
	b.WriteString(
		"| Workload | Pods | Created | Ready | Settled | Writes: pods and others | status | Refused | Scaled to 0 |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, result := range r.Results {
		base, own := result.StatefulSet, result.NodeSet
		fmt.Fprintf(&b, "| StatefulSet | %d | %.1f | %.1f | %.1f | %.2f | | %d | %.1f |\n",
			base.Pods, base.Created, base.Ready, base.Settled, base.PerPod(base.Creation,
				base.Controllers...), base.Refused, base.Gone)
		pods, separate := perPod(own.Creation, own.Pods)
		fmt.Fprintf(&b, "| NodeSet | %d | %.1f | %.1f | %.1f | %.2f | %.2f | %d | %.1f |\n",
			own.Pods, own.Created, own.Ready, own.Settled, pods, separate, own.Refused, own.Gone)
		fmt.Fprintf(&b, "| ratio | | %.2f | %.2f | %.2f | | | | %.2f |\n",
			own.Created/base.Created, own.Ready/base.Ready, own.Settled/base.Settled, own.Gone/base.Gone)
	}
	b.WriteString(
		"\n| Step | Pods | Seconds | Writes per pod: pods and others | status | Requests to Slurm | MB from Slurm | " +
			"CPU seconds |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, result := range r.Results {
		for _, step := range []struct {
			name string
			Step
		}{{"create", result.Creation}, {"rolling update", result.Update}, {"scale in to 0", result.ScaleIn}} {
			if step.Seconds == 0 {
				continue // not measured
			}
			pods, separate := perPod(step.Writes, step.Pods)
			fmt.Fprintf(&b, "| %s | %d | %.1f | %.2f | %.2f | %d | %.1f | %.1f |\n", step.name, step.Pods,
				step.Seconds, pods, separate, step.SlurmRequests, float64(step.SlurmBytes)/1e6, step.CPU)
		}
	}
	b.WriteString(
		"\n| Idle, per minute | Pods | Writes | CPU seconds | Requests to Slurm | kB from Slurm | Heap in MB | " +
			"Heap per pod in kB |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, result := range r.Results {
		fmt.Fprintf(&b, "| no NodeSet | 0 | %s | |\n", result.Empty)
		fmt.Fprintf(&b, "| NodeSet | %d | %s | %.1f |\n", result.NodeSet.Pods, result.Idle, result.heapPerPod()/1e3)
	}
	b.WriteString(
		"\n| A node changes in Slurm, seconds until it shows | Pods | Changes | p50 | p99 | Longest " +
			"|\n|---|--:|--:|--:|--:|--:|\n")
	for _, result := range r.Results {
		for _, where := range []struct {
			name   string
			values []float64
		}{{"on the pod", result.Reaction.Pods}, {"in the status", result.Reaction.Status}} {
			fmt.Fprintf(&b, "| %s | %d | %d | %.2f | %.2f | %.2f |\n", where.name, result.NodeSet.Pods,
				len(where.values),
				percentile(where.values, 50), percentile(where.values, 99), percentile(where.values, 100))
		}
	}
	return b.String()
}
