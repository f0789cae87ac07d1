package scale

import (
	"fmt"
	"slices"
	"strings"
)

// NodeSetReport is all results about NodeSets of one run, and where it ran.
type NodeSetReport struct {
	Kubernetes string          `json:"kubernetes"`
	Cores      int             `json:"cores"`
	Nodes      int             `json:"nodes"`
	Results    []NodeSetResult `json:"results"`
}

// NodeSetResult is what was measured of one NodeSet, beside a StatefulSet of the same size.
type NodeSetResult struct {
	StatefulSet Result `json:"statefulSet"`
	NodeSet     Result `json:"nodeSet"`
	// Creation, Update and ScaleIn are what these three steps took.
	Creation Step `json:"creation"`
	Update   Step `json:"update"`
	ScaleIn  Step `json:"scaleIn"`
	// Rest is when all pods are there and nothing happens, Empty when there is no NodeSet.
	Rest  Rest `json:"rest"`
	Empty Rest `json:"empty"`
	// Reaction is how long it takes until Kubernetes knows what has changed in Slurm.
	Reaction Reaction `json:"reaction"`
}

// Step is what one change of a NodeSet took.
type Step struct {
	Seconds float64 `json:"seconds"`
	// Writes are the operator's.
	Writes        []Writes `json:"writes"`
	SlurmRequests int      `json:"slurmRequests"`
	SlurmBytes    int64    `json:"slurmBytes"`
	CPU           float64  `json:"cpuSeconds"`
}

// Rest is what the operator does in a minute in which nothing happens.
type Rest struct {
	Writes        float64 `json:"writesPerMinute"`
	SlurmRequests float64 `json:"slurmRequestsPerMinute"`
	SlurmBytes    float64 `json:"slurmBytesPerMinute"`
	CPU           float64 `json:"cpuSecondsPerMinute"`
	// Heap is the bytes of its objects.
	Heap int64 `json:"heapBytes"`
}

// Reaction is how long changes of single nodes took to show, in seconds: on the pod, and in the status of the NodeSet.
type Reaction struct {
	Pods   []float64 `json:"podSeconds"`
	Status []float64 `json:"statusSeconds"`
}

// apart tells whether writes are counted apart from those that make pods: status, and claims.
func (w Writes) apart() bool {
	return strings.HasSuffix(w.Resource, "/status") || w.Resource == "persistentvolumeclaims"
}

// perPod is how often the operator wrote for each pod, without and with what is counted apart.
func (r NodeSetResult) perPod(writes []Writes) (pods, apart float64) {
	for _, write := range writes {
		if write.User != OperatorUser {
			continue
		}
		if write.apart() {
			apart += float64(write.Requests) / float64(r.NodeSet.Pods)
		} else {
			pods += float64(write.Requests) / float64(r.NodeSet.Pods)
		}
	}
	return pods, apart
}

// heapPerPod is in bytes.
func (r NodeSetResult) heapPerPod() float64 {
	return float64(r.Rest.Heap-r.Empty.Heap) / float64(r.NodeSet.Pods)
}

// String is a rest as cells of a table.
func (r Rest) String() string {
	return fmt.Sprintf("%.1f | %.2f | %.0f | %.0f | %.1f", r.Writes, r.CPU, r.SlurmRequests, r.SlurmBytes/1e3, float64(r.Heap)/1e6)
}

// percentile is the value that so many percent of the values do not exceed; 0 without any.
func percentile(values []float64, percent int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)*percent+99)/100-1]
}

// Markdown renders the report as tables: first side by side with a StatefulSet, then what only a NodeSet does.
func (r NodeSetReport) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Kubernetes %s, %d cores, %d simulated nodes. Times in seconds, writes per pod.\n\n", r.Kubernetes, r.Cores, r.Nodes)
	b.WriteString("| Workload | Pods | Created | Ready | Settled | Writes: pods and others | status | Refused | Scaled to 0 |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, result := range r.Results {
		base, own := result.StatefulSet, result.NodeSet
		fmt.Fprintf(&b, "| StatefulSet | %d | %.1f | %.1f | %.1f | %.2f | | %d | %.1f |\n",
			base.Pods, base.Created, base.Ready, base.Settled, base.PerPod(base.Creation, base.Controllers...), base.Refused, base.Gone)
		pods, apart := result.perPod(own.Creation)
		fmt.Fprintf(&b, "| NodeSet | %d | %.1f | %.1f | %.1f | %.2f | %.2f | %d | %.1f |\n",
			own.Pods, own.Created, own.Ready, own.Settled, pods, apart, own.Refused, own.Gone)
		fmt.Fprintf(&b, "| ratio | | %.2f | %.2f | %.2f | | | | %.2f |\n",
			own.Created/base.Created, own.Ready/base.Ready, own.Settled/base.Settled, own.Gone/base.Gone)
	}
	b.WriteString("\n| Step | Pods | Seconds | Writes per pod: pods and others | status | Requests to Slurm | MB from Slurm | CPU seconds |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, result := range r.Results {
		for _, step := range []struct {
			name string
			Step
		}{{"create", result.Creation}, {"rolling update", result.Update}, {"scale in to 0", result.ScaleIn}} {
			if step.Seconds == 0 {
				continue // not measured
			}
			pods, apart := result.perPod(step.Writes)
			fmt.Fprintf(&b, "| %s | %d | %.1f | %.2f | %.2f | %d | %.1f | %.1f |\n", step.name, result.NodeSet.Pods,
				step.Seconds, pods, apart, step.SlurmRequests, float64(step.SlurmBytes)/1e6, step.CPU)
		}
	}
	b.WriteString("\n| At rest, a minute | Pods | Writes | CPU seconds | Requests to Slurm | kB from Slurm | Heap in MB | Heap per pod in kB |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, result := range r.Results {
		fmt.Fprintf(&b, "| no NodeSet | 0 | %s | |\n", result.Empty)
		fmt.Fprintf(&b, "| NodeSet | %d | %s | %.1f |\n", result.NodeSet.Pods, result.Rest, result.heapPerPod()/1e3)
	}
	b.WriteString("\n| A node changes in Slurm, seconds until it shows | Pods | Changes | p50 | p99 | Longest |\n|---|--:|--:|--:|--:|--:|\n")
	for _, result := range r.Results {
		for _, where := range []struct {
			name   string
			values []float64
		}{{"on the pod", result.Reaction.Pods}, {"in the status", result.Reaction.Status}} {
			fmt.Fprintf(&b, "| %s | %d | %d | %.2f | %.2f | %.2f |\n", where.name, result.NodeSet.Pods, len(where.values),
				percentile(where.values, 50), percentile(where.values, 99), percentile(where.values, 100))
		}
	}
	return b.String()
}
