// Package nodes joins Slurm nodes with their pods and Kubernetes nodes.
//
// Slurm's records come from scontrol. Without them, such as for a missing right, the operator's pod conditions show the
// state of each Slurm node, a little later and without its allocation.
package nodes

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/hostlist"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// An Input is what is joined.
type Input struct {
	// Slurm are Slurm's records, and Asked says that Slurm was asked for them.
	Slurm []slurm.Node
	Asked bool
	Jobs  []slurmcli.Job
	Pods  []corev1.Pod
	// Cordoned are the Kubernetes nodes that are cordoned, by name.
	Cordoned map[string]bool
}

// A Result is the answer of the command.
type Result struct {
	Nodes []Node   `json:"nodes"`
	Notes []string `json:"notes,omitempty"`
}

// A Node is a Slurm node with its pod and Kubernetes node.
type Node struct {
	Name string `json:"name"`
	// State is as Slurm writes it, such as IDLE+DRAIN; empty if Slurm does not have the node.
	State          string `json:"state,omitempty"`
	NodeSet        string `json:"nodeSet,omitempty"`
	Pod            string `json:"pod,omitempty"`
	PodState       string `json:"podState,omitempty"`
	KubernetesNode string `json:"kubernetesNode,omitempty"`
	Cordoned       bool   `json:"cordoned,omitempty"`

	CPUs            int      `json:"cpus,omitempty"`
	AllocatedCPUs   int      `json:"allocatedCPUs"`
	Memory          int64    `json:"memoryMiB,omitempty"`
	AllocatedMemory int64    `json:"allocatedMemoryMiB"`
	GRES            string   `json:"gres,omitempty"`
	GRESUsed        string   `json:"gresUsed,omitempty"`
	Partitions      []string `json:"partitions,omitempty"`
	Version         string   `json:"version,omitempty"`
	Jobs            []string `json:"jobs,omitempty"`

	// Reason is why the node is closed to jobs, ReasonBy who set it, and Owner who may lift it: operator or others.
	Reason   string     `json:"reason,omitempty"`
	ReasonBy string     `json:"reasonBy,omitempty"`
	ReasonAt *time.Time `json:"reasonAt,omitempty"`
	Owner    string     `json:"owner,omitempty"`
	// Closed and Down are for marks.
	Closed bool `json:"closed"`
	Down   bool `json:"down"`
}

// Owners of a drain.
const (
	OwnerOperator = "operator"
	OwnerOthers   = "others"
)

// Join returns all nodes that Slurm or Kubernetes has, sorted by name and number.
func Join(input *Input) []Node {
	pods := make(map[string]*corev1.Pod, len(input.Pods))
	for i := range input.Pods {
		pods[kube.SlurmNode(&input.Pods[i])] = &input.Pods[i]
	}
	jobs := JobsByNode(input.Jobs)
	result := []Node{}
	for i := range input.Slurm {
		record := &input.Slurm[i]
		node := Node{Name: record.Name, Jobs: jobs[record.Name]}
		node.addRecord(record)
		if pod := pods[record.Name]; pod != nil {
			node.addPod(pod, input.Cordoned)
			delete(pods, record.Name)
		} else if owner, err := slurm.ParseOwner(record.Comment); err == nil {
			node.NodeSet, node.PodState = owner.NodeSetName, PodMissing
		}
		result = append(result, node)
	}
	for name, pod := range pods {
		node := Node{Name: name, Jobs: jobs[name]}
		if !input.Asked {
			node.addConditions(pod)
		}
		node.addPod(pod, input.Cordoned)
		result = append(result, node)
	}
	slices.SortFunc(result, func(a, b Node) int { return CompareNames(a.Name, b.Name) })
	return result
}

func (n *Node) addRecord(record *slurm.Node) {
	n.State = StateOf(record)
	n.CPUs, n.AllocatedCPUs = record.CPUs, record.AllocatedCPUs
	n.Memory, n.AllocatedMemory = record.Memory, record.AllocatedMemory
	n.GRES, n.GRESUsed = record.GRES, record.GRESUsed
	n.Partitions, n.Version = record.Partitions, record.Version
	n.Closed, n.Down = record.Closed(), record.State == slurm.StateDown || record.Flags.Has(slurm.FlagFail)
	if !n.Closed {
		return // 24.11 keeps the reason of a drain that was lifted
	}
	n.Reason, n.ReasonBy = record.Reason, record.ReasonBy
	if !record.ReasonAt.IsZero() {
		n.ReasonAt = &record.ReasonAt
	}
	n.Owner = OwnerOthers
	if record.DrainedByUs() {
		n.Owner = OwnerOperator
	}
}

// hiddenFlags are flags of every node of a NodeSet.
const hiddenFlags = slurm.FlagDynamicNorm | slurm.FlagDynamicFuture

// StateOf returns the state of a node as Slurm writes it, without what all nodes have in common.
func StateOf(record *slurm.Node) string {
	shown := *record
	shown.Flags &^= hiddenFlags
	return strings.Join(shown.StateNames(), "+")
}

// addConditions reads the state from the operator's conditions on the pod.
func (n *Node) addConditions(pod *corev1.Pod) {
	var states []string
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		state, ours := strings.CutPrefix(string(condition.Type), slinkyv1beta1.PodConditionPrefix)
		if !ours || condition.Status != corev1.ConditionTrue {
			continue
		}
		if state = snakeCase(state); state == "DYNAMIC_NORM" || state == "DYNAMIC_FUTURE" {
			continue
		}
		states = append(states, state)
		n.Reason = cmp.Or(n.Reason, condition.Message)
	}
	base, flags, _ := slurm.ParseState(states)
	record := slurm.Node{State: base, Flags: flags, Reason: n.Reason}
	if len(states) > 0 {
		n.State = StateOf(&record)
	}
	n.Closed, n.Down = record.Closed(), base == slurm.StateDown || flags.Has(slurm.FlagFail)
	if n.Closed {
		n.Owner = OwnerOthers
		if record.DrainedByUs() {
			n.Owner = OwnerOperator
		}
	}
}

// snakeCase converts the type of a condition back to Slurm's word: NotResponding becomes NOT_RESPONDING.
func snakeCase(state string) string {
	var word strings.Builder
	for i, letter := range state {
		if i > 0 && letter >= 'A' && letter <= 'Z' {
			word.WriteByte('_')
		}
		word.WriteRune(letter)
	}
	return strings.ToUpper(word.String())
}

func (n *Node) addPod(pod *corev1.Pod, cordoned map[string]bool) {
	n.Pod, n.PodState = pod.Name, PodState(pod)
	n.NodeSet, _ = naming.Instance(naming.Slurmd, pod.Labels)
	n.KubernetesNode = pod.Spec.NodeName
	n.Cordoned = cordoned[pod.Spec.NodeName]
}

// PodMissing is the state of a pod that does not exist.
const PodMissing = "Missing"

// PodState returns the state of a pod in a word, as kubectl get pods does.
func PodState(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "Terminating"
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if waiting := statuses[i].State.Waiting; waiting != nil && waiting.Reason != "" &&
				waiting.Reason != "PodInitializing" {
				return waiting.Reason
			}
		}
	}
	if pod.Status.Phase == corev1.PodRunning && !kube.IsReady(pod) {
		return "NotReady"
	}
	return cmp.Or(pod.Status.Reason, string(pod.Status.Phase))
}

// maxNodes is Slurm's own limit.
const maxNodes = 65536

// JobsByNode returns the jobs that hold nodes, by node.
func JobsByNode(jobs []slurmcli.Job) map[string][]string {
	result := map[string][]string{}
	for i := range jobs {
		if jobs[i].Pending() {
			continue
		}
		names, err := hostlist.Expand(jobs[i].Nodes, maxNodes)
		if err != nil {
			continue // squeue prints what it got; a table does without
		}
		for _, name := range names {
			result[name] = append(result[name], jobs[i].ID)
		}
	}
	return result
}

// CompareNames compares names by their text and the numbers in it: gpu-9 is before gpu-10.
func CompareNames(a, b string) int {
	for a != "" && b != "" {
		var one, other string
		one, a = cutChunk(a)
		other, b = cutChunk(b)
		if isDigit(one[0]) && isDigit(other[0]) {
			left, right := strings.TrimLeft(one, "0"), strings.TrimLeft(other, "0")
			if order := cmp.Or(cmp.Compare(len(left), len(right)), cmp.Compare(left, right),
				cmp.Compare(one, other)); order != 0 {
				return order
			}
		} else if one != other {
			return cmp.Compare(one, other)
		}
	}
	return cmp.Compare(a, b)
}

// cutChunk cuts off the first digits of a text, or what is before them.
func cutChunk(text string) (chunk, rest string) {
	end := 1
	for end < len(text) && isDigit(text[end]) == isDigit(text[0]) {
		end++
	}
	return text[:end], text[end:]
}

func isDigit(letter byte) bool { return '0' <= letter && letter <= '9' }
