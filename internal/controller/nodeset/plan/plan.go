// Package plan decides what happens next to the pods of a NodeSet.
//
// Next is a pure function of a Snapshot: after a crash, the next call makes the same plan, because every step leaves
// its mark in Kubernetes or in Slurm. It answers five questions:
//
//	which pods are in excess?       scale.go   pods beyond the desired ones, in a fixed order; a choice is kept
//	which are outdated?             update.go  pods of an older revision, as many at a time as may be unavailable
//	which Slurm nodes are drained?  drain.go   those of both, and on request of users and Kubernetes nodes
//	which pods may be deleted?      remove.go  those that the deletion rule (release.go) releases, and no others
//	which pods may be evicted?      protect.go those that the same rule would release
//
// Then it marks pods that wait for their scale-in (mark.go), deletes Slurm records without a pod (prune.go) and creates
// missing pods (create.go). Every action says why.
//
// In an elastic NodeSet, Slurm decides which pods there are: elastic.go creates those of the nodes that Slurm powers
// up, the deletion rule also releases those that it has powered down, and power.go asks Slurm to power nodes up and
// down. If the pods of a job need room that an autoscaler provides, provision.go asks for it first.
package plan

import (
	"fmt"
	"strings"
	"time"
)

// A Kind is what an action does.
type Kind string

// The kinds of actions, in the order in which they are carried out.
const (
	// Undrain lifts a drain of the operator, so that a Slurm node takes jobs again.
	Undrain Kind = "undrain"
	// Drain makes a Slurm node take no more jobs.
	Drain Kind = "drain"
	// ClearReason replaces a reason of the operator that outlived its drain.
	ClearReason Kind = "clear-reason"
	// PowerUp, PowerDown and ForcePowerDown power Slurm nodes up and down; ForcePowerDown gives up a power-up. Resume
	// opens a node whose power-up Slurm has given up.
	PowerUp        Kind = "power-up"
	PowerDown      Kind = "power-down"
	ForcePowerDown Kind = "force-power-down"
	Resume         Kind = "resume"
	// UnmarkPod removes the operator's cordon mark from a pod; MarkPod sets it.
	UnmarkPod Kind = "unmark"
	MarkPod   Kind = "mark"
	// Delete deletes a pod.
	Delete Kind = "delete"
	// Prune deletes the record of a Slurm node.
	Prune Kind = "prune"
	// Withdraw deletes a request for room; RequestCapacity creates one.
	Withdraw        Kind = "withdraw"
	RequestCapacity Kind = "request-capacity"
	// Create creates a pod.
	Create Kind = "create"
)

// An Action is one step, with the reason for it.
type Action struct {
	Kind Kind
	// Pod is the pod concerned; one to create has an ordinal or a Kubernetes node, and no name.
	Pod *Pod
	// SlurmNode is the Slurm node concerned.
	SlurmNode string
	Cause     Cause
	// Why is the cause in words. For a drain it is the reason that Slurm shows.
	Why string
	// Request is the request for room that is created or deleted, or that a new pod uses; nil if there is none.
	Request *Request
	// ScaledIn says that the pod's ordinal is scaled in, so that the retention policy applies to its PVCs.
	ScaledIn bool
}

// A Cause is why an action is taken, in a word.
type Cause string

// The causes.
const (
	Missing            Cause = "Missing"
	ScaleIn            Cause = "ScaleIn"
	Updating           Cause = "Update"
	Deletion           Cause = "Deletion"
	PodCordon          Cause = "PodCordon"
	FromKubernetesNode Cause = "KubernetesNode"
	Exited             Cause = "Exited"
	Lost               Cause = "RecordLost"
	NoCause            Cause = "CauseGone"
	NoPod              Cause = "NoPod"
	// ForJob and the following are those of elastic NodeSets.
	ForJob        Cause = "Job"
	ForMinimum    Cause = "Minimum"
	ForWarm       Cause = "Warm"
	ForSchedule   Cause = "Schedule"
	Idle          Cause = "Idle"
	PoweredDown   Cause = "PoweredDown"
	NoCapacity    Cause = "NoCapacity"
	NotStarted    Cause = "NotStarted"
	BackoffIsOver Cause = "BackoffOver"
)

// A Wait is a pod that should be deleted and is held.
type Wait struct {
	Pod   *Pod
	Cause Cause
	Hold  Hold
}

// A Plan is what to do next, and what holds the rest.
type Plan struct {
	Actions []Action
	// Waits are the pods that should be deleted and are held.
	Waits []Wait
	// Desired, Available and Updated count pods.
	Desired, Available, Updated int
	// Outdated counts the pods of an older revision.
	Outdated int
	// Protections are those of the pods, in the order of the snapshot.
	Protections []Protection
	// Unregistered are the Slurm nodes of ready pods that did not register in time.
	Unregistered []string
	// Stopped says why the update is stopped; empty if it is not.
	Stopped string
	// Withheld says why missing pods are not created; empty if they are, or none is missing.
	Withheld string
	// Elastic summarizes an elastic NodeSet; it is zero for others.
	Elastic Summary
	// NeedsRefresh says that something waits only for a newer snapshot of Slurm. It must have newer records of the Slurm
	// nodes in Refresh; of all, including those that do not exist, if that is nil.
	NeedsRefresh bool
	Refresh      []string
	// Wake is when to plan again without an event; zero for never.
	Wake time.Time
}

// Of returns the actions of a kind, in their order.
func (p *Plan) Of(kind Kind) []Action {
	var found []Action
	for _, action := range p.Actions {
		if action.Kind == kind {
			found = append(found, action)
		}
	}
	return found
}

// Deleted returns the names of the pods that the plan deletes.
func (p *Plan) Deleted() map[string]bool {
	deleted := map[string]bool{}
	for _, action := range p.Of(Delete) {
		deleted[action.Pod.Name] = true
	}
	return deleted
}

// Next makes a plan.
func Next(snapshot *Snapshot) Plan {
	plan := &planner{
		Snapshot: snapshot, leaving: map[string]Cause{}, givenUp: map[int64]bool{}, closing: map[string]bool{},
	}
	plan.count()
	plan.scaleIn()
	plan.update()
	plan.drain()
	plan.power()
	plan.remove()
	plan.protect()
	plan.mark()
	plan.prune()
	plan.create()
	if plan.complete {
		plan.Refresh = nil
	}
	return plan.Plan
}

// A planner is a plan in the making.
type planner struct {
	*Snapshot
	Plan
	// leaving are the pods that should be deleted, by name.
	leaving map[string]Cause
	// proven reports whether the new revision works on some pod; trying counts the pods that have it, or are about to.
	proven bool
	trying int
	// groups are the Slurm nodes that are powering up, of an elastic NodeSet.
	groups []group
	// givenUp are the jobs whose groups are given up; 0 stands for all that are not known.
	givenUp map[int64]bool
	// complete says that only a complete list of Slurm nodes is new enough.
	complete bool
	// closing are the Slurm nodes that are closed because they could not be started.
	closing map[string]bool
	// requests are the requests for room by the names of their Slurm nodes; used are the names of those that pods use.
	requests map[string][]*Request
	used     map[string]bool
}

// refresh asks for a newer record of a Slurm node. Only a complete list shows whether one without a record exists.
func (p *planner) refresh(node string) {
	if _, known := p.Slurm.Node(node); !known {
		p.complete = true
	}
	p.NeedsRefresh, p.Refresh = true, append(p.Refresh, node)
}

// refreshAll asks for a newer list of all Slurm nodes.
func (p *planner) refreshAll() { p.NeedsRefresh, p.complete = true, true }

// count counts pods.
func (p *planner) count() {
	p.Desired = p.desired()
	for i := range p.Pods {
		pod := &p.Pods[i]
		if p.available(pod) {
			p.Available++
		} else if !pod.ReadySince.IsZero() {
			p.wakeAt(pod.ReadySince.Add(p.Set.MinReady))
		}
		switch {
		case pod.Terminating:
		case p.upToDate(pod):
			p.Updated++
		default:
			p.Outdated++
		}
		p.countUnregistered(pod)
	}
}

func (p *planner) countUnregistered(pod *Pod) {
	if !p.Answers || p.Slurm == nil || pod.Terminating || pod.ReadySince.IsZero() || pod.Started.IsZero() ||
		p.record(pod) != nil {
		return
	}
	until := pod.Started.Add(p.Set.Registration)
	if p.Now.Before(until) {
		p.wakeAt(until)
		return
	}
	p.Unregistered = append(p.Unregistered, pod.SlurmNode)
}

func (p *planner) do(action Action) { p.Actions = append(p.Actions, action) }

// wakeAt asks for another plan at a moment in the future.
func (p *planner) wakeAt(moment time.Time) {
	if moment.After(p.Now) && (p.Wake.IsZero() || moment.Before(p.Wake)) {
		p.Wake = moment
	}
}

// String returns a plan as text, for logs and golden files.
func (p Plan) String() string {
	var lines strings.Builder
	for _, action := range p.Actions {
		fmt.Fprintf(&lines, "%s %s: %s\n", action.Kind, action.subject(), action.Why)
	}
	for _, wait := range p.Waits {
		fmt.Fprintf(&lines, "keep %s (%s): %s\n", wait.Pod.Name, wait.Cause, wait.Hold.Why)
	}
	if p.Stopped != "" {
		fmt.Fprintf(&lines, "update stopped: %s\n", p.Stopped)
	}
	if p.Withheld != "" {
		fmt.Fprintf(&lines, "create nothing: %s\n", p.Withheld)
	}
	return lines.String()
}

func (a Action) subject() string {
	switch {
	case a.Kind == Create && a.Pod.Ordinal >= 0:
		return fmt.Sprintf("ordinal %d", a.Pod.Ordinal)
	case a.Kind == Create:
		return "on " + a.Pod.KubernetesNode
	case a.Kind == RequestCapacity || a.Kind == Withdraw:
		return a.Request.Name
	case a.Kind == Delete || a.Kind == MarkPod || a.Kind == UnmarkPod:
		return a.Pod.Name
	default:
		return "node " + a.SlurmNode
	}
}
