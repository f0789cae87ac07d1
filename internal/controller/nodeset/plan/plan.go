// Package plan decides what happens next to the pods of a NodeSet.
//
// Next is a function of a Snapshot and nothing else, and all that it knows is in there: after a crash, the next call makes
// the same plan, because every step leaves its mark in Kubernetes or in Slurm. It answers four questions:
//
//	which pods are too many?        scale.go    pods beyond the desired ones, in a fixed order; those chosen before stay chosen
//	which are out of date?          update.go   pods of an older revision, as many at a time as may be unavailable
//	which nodes get no more jobs?   drain.go    of those two, and what people and Kubernetes nodes ask for; other drains of ours end
//	which pods may be deleted?      remove.go   those that the deletion rule (release.go) lets go, the only way to a delete
//
// and last removes records of Slurm without a pod (prune.go) and creates what is missing (create.go). Every action says why.
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
	// Undrain lifts a drain of ours, so that a node takes jobs again.
	Undrain Kind = "undrain"
	// Drain makes a node take no more jobs.
	Drain Kind = "drain"
	// ClearReason replaces a reason of ours that has outlived its drain.
	ClearReason Kind = "clear reason of"
	// Delete deletes a pod.
	Delete Kind = "delete"
	// Prune removes a node's record from Slurm.
	Prune Kind = "prune"
	// Create creates a pod.
	Create Kind = "create"
)

// An Action is one step, with the reason for it.
type Action struct {
	Kind Kind
	// Pod is the pod that it is about; when the action is to create one, it has an ordinal or a machine, and no name.
	Pod *Pod
	// Node is the Slurm node that it is about.
	Node  string
	Cause Cause
	// Why is the cause in words, for people. With a drain it is what Slurm shows as the reason.
	Why string
	// WithClaims says that the pod's claims may go with it, because its ordinal does.
	WithClaims bool
}

// A Cause is why a pod is touched, in a word.
type Cause string

// The causes.
const (
	Missing   Cause = "Missing"
	ScaleIn   Cause = "ScaleIn"
	Updating  Cause = "Update"
	Deletion  Cause = "Deletion"
	PodCordon Cause = "PodCordon"
	Machinery Cause = "KubernetesNode"
	Ended     Cause = "Ended"
	Lost      Cause = "RecordLost"
	NoCause   Cause = "CauseGone"
	NoPod     Cause = "NoPod"
)

// A Wait is a pod that is to go and may not yet.
type Wait struct {
	Pod   *Pod
	Cause Cause
	Hold  Hold
}

// A Plan is what to do next, and what stands in the way of more.
type Plan struct {
	Actions []Action
	// Waits are the pods that are to go and may not yet.
	Waits []Wait
	// Desired and the rest count pods.
	Desired, Available, Updated int
	// Outdated is how many pods of an older revision there are.
	Outdated int
	// Stopped says why the update does not go on; empty when it does.
	Stopped string
	// Withheld says why missing pods are not created; empty when they are, or none is missing.
	Withheld string
	// Proof says that something waits for nothing but a newer look at Slurm.
	Proof bool
	// Wake is when to plan again although nothing has happened; zero for never.
	Wake time.Time
}

// Of are the actions of a kind, in their order.
func (p *Plan) Of(kind Kind) []Action {
	var found []Action
	for _, action := range p.Actions {
		if action.Kind == kind {
			found = append(found, action)
		}
	}
	return found
}

// Goes tells which pods are deleted, by their names.
func (p *Plan) Goes() map[string]bool {
	going := map[string]bool{}
	for _, action := range p.Of(Delete) {
		going[action.Pod.Name] = true
	}
	return going
}

// Next makes a plan.
func Next(snapshot *Snapshot) Plan {
	plan := &planner{Snapshot: snapshot, leaving: map[string]Cause{}}
	plan.count()
	plan.scaleIn()
	plan.update()
	plan.drain()
	plan.remove()
	plan.prune()
	plan.create()
	return plan.Plan
}

// A planner is a plan in the making.
type planner struct {
	*Snapshot
	Plan
	// leaving are the pods that are to go, by name.
	leaving map[string]Cause
	// proven tells whether the new revision works somewhere; trying is how many pods have it, or are about to.
	proven bool
	trying int
}

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
		case pod.Revision == p.Set.Revision:
			p.Updated++
		default:
			p.Outdated++
		}
	}
}

func (p *planner) do(action Action) { p.Actions = append(p.Actions, action) }

// wakeAt asks for another plan at a moment, if that is to come.
func (p *planner) wakeAt(moment time.Time) {
	if moment.After(p.Now) && (p.Wake.IsZero() || moment.Before(p.Wake)) {
		p.Wake = moment
	}
}

// String is a plan as a person would note it down.
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
		return "on " + a.Pod.Machine
	case a.Kind == Delete:
		return a.Pod.Name
	default:
		return "node " + a.Node
	}
}
