package scale

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/test/cluster/audit"
	"github.com/slurm-operator/slurm-operator/test/scale/simulated"
)

// Report is all results of a run, and its environment.
type Report struct {
	Kubernetes string   `json:"kubernetes"`
	Cores      int      `json:"cores"`
	Nodes      int      `json:"nodes"`
	Results    []Result `json:"results"`
}

// Result is the measurement of a workload in its own cluster.
type Result struct {
	Kind string `json:"kind"`
	Pods int    `json:"pods"`
	// Controllers are the users that manage the workload.
	Controllers []string `json:"controllers"`

	// Created, Ready and Settled are seconds since the workload's creation; Gone is seconds since its deletion.
	Created float64 `json:"createdSeconds"`
	Ready   float64 `json:"readySeconds"`
	Settled float64 `json:"settledSeconds"`
	Gone    float64 `json:"goneSeconds"`

	Creation []Writes `json:"creationWrites"`
	Deletion []Writes `json:"deletionWrites"`
	// Refused counts the writes that the API server refused because it was too busy. They are not among the writes.
	Refused int `json:"refusedWrites"`

	// CreationCPU is the CPU seconds that each daemon had used when the workload had settled.
	CreationCPU map[string]float64 `json:"creationCPUSeconds"`
	// Daemons are the daemons of the control plane, and kwok.
	Daemons map[string]Usage `json:"daemons"`
}

// Writes counts a user's writes with a verb to a resource.
type Writes struct {
	User     string `json:"user"`
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Requests int    `json:"requests"`
}

// Usage is the peak memory of a daemon in bytes, and its CPU seconds.
type Usage struct {
	PeakMemory int64   `json:"peakMemoryBytes"`
	CPU        float64 `json:"cpuSeconds"`
}

func summarize(requests []audit.Request) []Writes {
	var writes []Writes
	for _, count := range audit.Summarize(requests) {
		writes = append(writes, Writes(count))
	}
	return writes
}

// PerPod returns the users' writes per pod.
func (r Result) PerPod(writes []Writes, users ...string) float64 {
	total := 0
	for _, write := range writes {
		if slices.Contains(users, write.User) {
			total += write.Requests
		}
	}
	return float64(total) / float64(r.Pods)
}

// Users that write for every workload.
const (
	schedulerUser        = "system:kube-scheduler"
	garbageCollectorUser = "system:serviceaccount:kube-system:generic-garbage-collector"
)

// Markdown renders the report as tables: first the workloads, then the cost for the control plane.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Kubernetes %s, %d cores, %d simulated nodes. Times in seconds, writes per pod.\n\n", r.Kubernetes,
		r.Cores, r.Nodes)
	b.WriteString(
		"| Workload | Pods | Created | Ready | Gone | Writes: controller | scheduler | kwok | On deletion: " +
			"collector | kwok | Refused |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, result := range r.Results {
		fmt.Fprintf(&b, "| %s | %d | %.1f | %.1f | %.1f | %.2f | %.2f | %.2f | %.2f | %.2f | %d |\n",
			result.Kind, result.Pods, result.Created, result.Ready, result.Gone,
			result.PerPod(result.Creation, result.Controllers...),
			result.PerPod(result.Creation, schedulerUser),
			result.PerPod(result.Creation, simulated.Kwok),
			result.PerPod(result.Deletion, garbageCollectorUser),
			result.PerPod(result.Deletion, simulated.Kwok),
			result.Refused)
	}
	b.WriteString("\nPeak of resident memory in MiB, and processor time in seconds.\n\n")
	b.WriteString("| Workload | Pods | etcd | API server | Controller manager | Scheduler | kwok | All |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, result := range r.Results {
		fmt.Fprintf(&b, "| %s | %d |", result.Kind, result.Pods)
		var all Usage
		for _, daemon := range simulated.Daemons {
			used := result.Daemons[daemon]
			all.PeakMemory += used.PeakMemory
			all.CPU += used.CPU
			fmt.Fprintf(&b, " %s |", used)
		}
		fmt.Fprintf(&b, " %s |\n", all)
	}
	return b.String()
}

// String returns a usage as a cell of a table.
func (u Usage) String() string { return fmt.Sprintf("%d, %.0f s", u.PeakMemory>>20, u.CPU) }

// WriteJSON writes a report to a file.
func WriteJSON(path string, report any) error {
	content, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}

// RewriteSection replaces the text between the two comments that mark a section of a document.
func RewriteSection(path, section, text string) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := fmt.Appendf(nil, "<!-- %s -->\n", section), fmt.Appendf(nil, "<!-- end of %s -->", section)
	before, rest, hasBegin := bytes.Cut(document, begin)
	_, after, hasEnd := bytes.Cut(rest, end)
	if !hasBegin || !hasEnd {
		return fmt.Errorf("%s has no section between %q and %q", path, begin, end)
	}
	return os.WriteFile(path, slices.Concat(before, begin, []byte(text), end, after), 0o644)
}

// WritesOf counts the requests of a user.
func WritesOf(requests []audit.Request, user string) []Writes {
	return summarize(pick(requests, func(r audit.Request) bool { return r.User == user && !isRefused(r) }))
}
