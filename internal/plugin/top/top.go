// Package top adds up what is allocated in a Slurm cluster, and to whom.
//
// Slurm knows what is allocated: nodes and jobs are read from it. What of that is used is known by others, and only in
// part: slurmd reports the load of its Kubernetes node, and metrics.k8s.io, if the cluster serves it, what pods use.
package top

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
)

// A View is a part of the answer.
type View string

// The views.
const (
	Overview View = ""
	Nodes    View = "nodes"
	Users    View = "users"
	GPUs     View = "gpus"
)

// Views are the views that have a name.
var Views = []string{string(Nodes), string(Users), string(GPUs)}

// An Input is what is added up.
type Input struct {
	Nodes []nodes.Node
	// Loads are what slurmds report, by Slurm node, and Pods what pods use, by pod.
	Loads map[string]slurmcli.Load
	Pods  map[string]PodUsage
	Jobs  []slurmcli.Allocation
}

// A PodUsage is what a pod uses.
type PodUsage struct {
	CPUs   float64
	Memory int64 // MiB
}

// A Result is the answer of the command.
type Result struct {
	Totals   Totals    `json:"totals"`
	Nodes    []Node    `json:"nodes,omitempty"`
	Users    []Share   `json:"users,omitempty"`
	Accounts []Share   `json:"accounts,omitempty"`
	GPUs     []GPUType `json:"gpus,omitempty"`
	Notes    []string  `json:"notes,omitempty"`

	view View
}

// Totals are the sums of the cluster.
type Totals struct {
	CPUs    Amount `json:"cpus"`
	Memory  Amount `json:"memoryMiB"`
	GPUs    Amount `json:"gpus"`
	Running int    `json:"runningJobs"`
	Pending int    `json:"pendingJobs"`
}

// An Amount is how much of a resource is allocated of how much.
type Amount struct {
	Allocated int64 `json:"allocated"`
	Total     int64 `json:"total"`
	// Closed is what is free on nodes that take no jobs.
	Closed int64 `json:"closed,omitempty"`
}

func (a *Amount) add(other Amount) {
	a.Allocated += other.Allocated
	a.Total += other.Total
	a.Closed += other.Closed
}

// share returns how much of the total is allocated.
func (a *Amount) share() float64 {
	if a.Total == 0 {
		return 0
	}
	return float64(a.Allocated) / float64(a.Total)
}

// A Node is a Slurm node with what is allocated and used of it.
type Node struct {
	Name           string `json:"name"`
	State          string `json:"state"`
	NodeSet        string `json:"nodeSet,omitempty"`
	KubernetesNode string `json:"kubernetesNode,omitempty"`

	CPUs   Amount `json:"cpus"`
	Memory Amount `json:"memoryMiB"`
	GPUs   Amount `json:"gpus"`
	Jobs   int    `json:"jobs"`
	// Load and FreeMemory are those of the Kubernetes node, as slurmd reports them.
	Load       *float64 `json:"load,omitempty"`
	FreeMemory *int64   `json:"freeMemoryMiB,omitempty"`
	// PodCPUs and PodMemory are what the slurmd pod uses, jobs included.
	PodCPUs   *float64 `json:"podCPUs,omitempty"`
	PodMemory *int64   `json:"podMemoryMiB,omitempty"`

	closed, down bool
}

// A Share is what jobs of a user or of an account hold and ask for.
type Share struct {
	Name    string `json:"name"`
	Running int    `json:"runningJobs"`
	CPUs    int64  `json:"cpus"`
	Memory  int64  `json:"memoryMiB"`
	GPUs    int64  `json:"gpus"`

	Pending     int   `json:"pendingJobs"`
	PendingCPUs int64 `json:"pendingCPUs"`
	PendingGPUs int64 `json:"pendingGPUs"`
}

// A GPUType is a type of GPU.
type GPUType struct {
	// Type is as in Gres=gpu:h100:8; empty if the GPUs have no type.
	Type string `json:"type"`
	Amount
	Nodes int `json:"nodes"`
}

// Add adds up the input.
func Add(input *Input, view View) *Result {
	result := &Result{view: view}
	types := map[string]*GPUType{}
	all := make([]Node, 0, len(input.Nodes))
	for i := range input.Nodes {
		node := newNode(&input.Nodes[i], input, types)
		result.Totals.CPUs.add(node.CPUs)
		result.Totals.Memory.add(node.Memory)
		result.Totals.GPUs.add(node.GPUs)
		all = append(all, node)
	}
	users, accounts := map[string]*Share{}, map[string]*Share{}
	requested := false
	for i := range input.Jobs {
		job := &input.Jobs[i]
		if job.Pending {
			result.Totals.Pending += job.Jobs
		} else {
			result.Totals.Running += job.Jobs
		}
		requested = requested || job.GPUsRequested
		add(users, job.User, job)
		add(accounts, cmp.Or(job.Account, "none"), job)
	}
	if view == Nodes {
		result.Nodes = all
	}
	if view == Overview || view == Users {
		result.Users, result.Accounts = list(users), list(accounts)
	}
	if view == Overview || view == GPUs {
		for _, name := range slices.Sorted(maps.Keys(types)) {
			result.GPUs = append(result.GPUs, *types[name])
		}
	}
	if requested && view != Nodes {
		result.Notes = append(result.Notes, "GPUs of users are those that their jobs ask for: to let Slurm count them, set "+
			"AccountingStorageTRES=gres/gpu in spec.extraConf")
	}
	return result
}

func newNode(from *nodes.Node, input *Input, types map[string]*GPUType) Node {
	node := Node{
		Name: from.Name, State: from.State, NodeSet: from.NodeSet, KubernetesNode: from.KubernetesNode,
		Jobs: len(from.Jobs), closed: from.Closed || from.State == "", down: from.Down,
	}
	amount := func(allocated, total int64) Amount {
		amount := Amount{Allocated: allocated, Total: total}
		if node.closed {
			amount.Closed = max(total-allocated, 0)
		}
		return amount
	}
	node.CPUs = amount(int64(from.AllocatedCPUs), int64(from.CPUs))
	node.Memory = amount(from.AllocatedMemory, from.Memory)
	used := gpus(from.GRESUsed)
	for name, total := range gpus(from.GRES) {
		each := amount(used[name], total)
		node.GPUs.add(each)
		if types[name] == nil {
			types[name] = &GPUType{Type: name}
		}
		types[name].Nodes++
		types[name].add(each)
	}
	load := input.Loads[from.Name]
	node.Load, node.FreeMemory = load.CPUs, load.FreeMemory
	if usage, known := input.Pods[from.Pod]; known {
		node.PodCPUs, node.PodMemory = &usage.CPUs, &usage.Memory
	}
	return node
}

// gpus returns the GPUs in a GRES of Slurm by type, such as gpu:h100:8(S:0-1),shard:h100:32.
func gpus(gres string) map[string]int64 {
	result := map[string]int64{}
	for _, device := range splitGRES(gres) {
		device, _, _ = strings.Cut(device, "(")
		words := strings.Split(device, ":")
		if words[0] != "gpu" {
			continue
		}
		words = words[1:]
		count := int64(1)
		if last := len(words) - 1; last >= 0 {
			if number, err := strconv.ParseInt(words[last], 10, 64); err == nil {
				count, words = number, words[:last]
			}
		}
		result[strings.Join(words, ":")] += count
	}
	return result
}

// splitGRES splits at commas that are not in parentheses.
func splitGRES(gres string) []string {
	depth := 0
	return strings.FieldsFunc(gres, func(letter rune) bool {
		switch letter {
		case '(':
			depth++
		case ')':
			depth--
		}
		return letter == ',' && depth == 0
	})
}

// add adds a job to the share of a user or an account.
func add(shares map[string]*Share, name string, job *slurmcli.Allocation) {
	share := shares[name]
	if share == nil {
		share = &Share{Name: name}
		shares[name] = share
	}
	if job.Pending {
		share.Pending += job.Jobs
		share.PendingCPUs += job.CPUs * int64(job.Jobs)
		share.PendingGPUs += job.GPUs * int64(job.Jobs)
		return
	}
	share.Running += job.Jobs
	share.CPUs += job.CPUs
	share.Memory += job.Memory
	share.GPUs += job.GPUs
}

func list(shares map[string]*Share) []Share {
	result := make([]Share, 0, len(shares))
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		result = append(result, *shares[name])
	}
	return result
}
