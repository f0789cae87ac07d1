// Package drain decides which Slurm nodes a user's drain or undrain changes.
//
// A drain has one owner. The operator lifts its own drains when their cause is gone, so a user does not lift them:
// Slurm would give the node jobs, and the operator would drain it again at once. The operator in turn never lifts a
// user's drain. Nothing is changed if a node does not exist, because Slurm 24.11 would change the others and then fail.
package drain

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/hostlist"
	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/why"
)

// A Result is what is changed, and what is not.
type Result struct {
	// Verb is drain or undrain.
	Verb   string `json:"verb"`
	DryRun bool   `json:"dryRun"`
	// Reason is the reason that Slurm shows.
	Reason string `json:"reason,omitempty"`
	// Changed are the nodes that are changed.
	Changed []string `json:"changed"`
	// Kept are nodes that are already as they should be, and Refused those that are not changed although they should be.
	Kept    []Kept `json:"kept,omitempty"`
	Refused []Kept `json:"refused,omitempty"`
	// Warnings are about changed nodes.
	Warnings []Kept `json:"warnings,omitempty"`
}

// Kept is a node, and why it is not changed.
type Kept struct {
	Node string `json:"node"`
	Why  string `json:"why"`
}

// Reason returns the reason that Slurm shows: that of the user, and the name of the user, because Slurm's commands run
// as SlurmUser in the pod.
func Reason(reason, user string) (string, error) {
	reason = strings.Join(strings.Fields(reason), " ")
	switch {
	case reason == "":
		return "", errors.New("say why, for everybody who finds the node drained: --reason='broken fan'")
	case strings.HasPrefix(reason, strings.TrimSpace(slinkyv1beta1.ReasonPrefix)):
		return "", fmt.Errorf("reasons that start with %q are the operator's, and it would lift the drain; choose another",
			slinkyv1beta1.ReasonPrefix)
	case user == "":
		return reason, nil
	default:
		return fmt.Sprintf("%s (%s)", reason, user), nil
	}
}

// Drain decides about a drain of nodes.
func Drain(names []string, cluster []nodes.Node, reason string, now time.Time) (Result, error) {
	chosen, err := choose(names, cluster)
	if err != nil {
		return Result{}, err
	}
	result := Result{Verb: "drain", Reason: reason, Changed: []string{}}
	for _, node := range chosen {
		switch {
		case node.Closed && node.Owner == nodes.OwnerOthers && !node.Down:
			result.Kept = append(result.Kept, Kept{node.Name, "it is already drained: " + node.Because(now)})
		case node.Closed && node.Owner == nodes.OwnerOperator:
			result.Changed = append(result.Changed, node.Name)
			result.Warnings = append(result.Warnings, Kept{node.Name, fmt.Sprintf("the operator had drained it (%s); "+
				"it now stays drained when that cause is gone", node.Reason)})
		default:
			result.Changed = append(result.Changed, node.Name)
		}
	}
	return result, nil
}

// Undrain decides about lifting drains.
func Undrain(names []string, cluster []nodes.Node) (Result, error) {
	chosen, err := choose(names, cluster)
	if err != nil {
		return Result{}, err
	}
	result := Result{Verb: "undrain", Changed: []string{}}
	for _, node := range chosen {
		switch {
		case !node.Closed:
			result.Kept = append(result.Kept, Kept{node.Name, "it is not drained: " + node.State})
		case node.Owner == nodes.OwnerOperator:
			result.Refused = append(result.Refused, Kept{node.Name, fmt.Sprintf("the operator drained it (%s); %s",
				node.Reason, why.Lift(node))})
		default:
			result.Changed = append(result.Changed, node.Name)
			if node.Cordoned {
				result.Warnings = append(result.Warnings, Kept{node.Name, fmt.Sprintf("its Kubernetes node is cordoned, so the "+
					"operator drains it again; uncordon it first: kubectl uncordon %s", node.KubernetesNode)})
			}
		}
	}
	return result, nil
}

// choose returns nodes by name. All of them must exist.
func choose(names []string, cluster []nodes.Node) ([]*nodes.Node, error) {
	var chosen []*nodes.Node
	var missing []string
	for _, name := range names {
		at := slices.IndexFunc(cluster, func(node nodes.Node) bool { return node.Name == name })
		if at < 0 || cluster[at].State == "" {
			missing = append(missing, name)
			continue
		}
		chosen = append(chosen, &cluster[at])
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("there is no node %s in Slurm; nothing was changed: see kubectl slurm nodes",
			hostlist.Text(missing))
	}
	return chosen, nil
}

// Command returns the command of Slurm that makes the changes; nil if there are none.
func (r *Result) Command() []string {
	if len(r.Changed) == 0 {
		return nil
	}
	command := []string{"scontrol", "update", "nodename=" + hostlist.Text(r.Changed)}
	if r.Verb == "drain" {
		return append(command, "state=drain", "reason="+r.Reason)
	}
	return append(command, "state=resume")
}

// Draw writes the result as text.
func (r *Result) Draw(page *output.Page) {
	verb := r.Verb + "ed"
	if r.DryRun {
		verb = "would " + r.Verb
	}
	if len(r.Changed) > 0 {
		text := fmt.Sprintf("%s %s: %s", verb, output.Plural(len(r.Changed), "node"), hostlist.Text(r.Changed))
		if r.Reason != "" {
			text += "; reason: " + r.Reason
		}
		page.Line("%s", page.Good(text))
	}
	list := func(label string, mark func(string) string, kept []Kept) {
		for _, node := range kept {
			page.Line("%s %s: %s", mark(cmp.Or(label, "unchanged")), node.Node, node.Why)
		}
	}
	list("warning", page.Warn, r.Warnings)
	list("unchanged", page.Dim, r.Kept)
	list("refused", page.Bad, r.Refused)
}
