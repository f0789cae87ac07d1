package scale

import (
	"fmt"
	"strings"
)

// ClustersReport is the results of a run with many Slurm clusters, and its environment.
type ClustersReport struct {
	Kubernetes string           `json:"kubernetes"`
	Cores      int              `json:"cores"`
	Nodes      int              `json:"nodes"`
	Results    []ClustersResult `json:"results"`
}

// ClustersResult is the measurement of an operator with many small Slurm clusters.
type ClustersResult struct {
	Clusters int `json:"clusters"`
	// Started is how long it takes from the creation of the first until all are ready, and StartedCPU the operator's CPU
	// seconds for that.
	Started    float64 `json:"startedSeconds"`
	StartedCPU float64 `json:"startedCPUSeconds"`
	// Restarted is how long it takes until a restarted operator has read all of them, and its CPU seconds.
	Restarted    float64 `json:"restartedSeconds"`
	RestartedCPU float64 `json:"restartedCPUSeconds"`
	// Idle is the cost per minute of all clusters together. EmptyHeap is the heap without any.
	Idle      Idle  `json:"rest"`
	EmptyHeap int64 `json:"emptyHeapBytes"`
	// Reaction is how long changes of nodes took to show up on their pods, in seconds; BesideSick the same while some
	// clusters are sick.
	Reaction   []float64 `json:"reactionSeconds"`
	BesideSick []float64 `json:"besideSickSeconds"`
}

// Markdown returns the results as a table.
func (r ClustersReport) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Kubernetes %s, %d cores. Each Slurm cluster has a Controller, a RestApi and a NodeSet of 2 pods.\n\n",
		r.Kubernetes, r.Cores)
	b.WriteString("| Clusters | All ready, s | CPU s | After a restart all read, s | CPU s | " +
		"A change shows, s: p50 | longest | beside sick clusters: p50 | longest |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, result := range r.Results {
		fmt.Fprintf(&b, "| %d | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", result.Clusters, result.Started,
			result.StartedCPU, result.Restarted, result.RestartedCPU, percentile(result.Reaction, 50),
			percentile(result.Reaction, 100), percentile(result.BesideSick, 50), percentile(result.BesideSick, 100))
	}
	b.WriteString("\n| Idle, per minute | Writes | CPU seconds | Requests to Slurm | kB from Slurm | Heap in MB | " +
		"Per cluster: CPU ms | requests | kB | heap in kB |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, result := range r.Results {
		clusters := float64(result.Clusters)
		fmt.Fprintf(&b, "| %d | %s | %.1f | %.1f | %.1f | %.0f |\n", result.Clusters, result.Idle,
			result.Idle.CPU*1e3/clusters, result.Idle.SlurmRequests/clusters, result.Idle.SlurmBytes/1e3/clusters,
			float64(result.Idle.Heap-result.EmptyHeap)/1e3/clusters)
	}
	return b.String()
}
