package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/hostlist"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// heldMessage is part of the message of ConfigurationApplied while keys are held back.
const heldMessage = "left out until the last older slurmd is gone"

// heldBack finds settings that are not in force because older slurmds would exit at them.
func heldBack(s *Snapshot) []Finding {
	var findings []Finding
	for _, object := range s.reported() {
		for i := range object.conditions {
			condition := &object.conditions[i]
			at := strings.Index(condition.Message, heldMessage)
			if condition.Type != slinkyv1beta1.ConditionConfigurationApplied || at < 0 {
				continue
			}
			finding := object.finding(Warning, "HeldBack", "some settings are "+condition.Message[at:])
			finding.Effect = "slurmctld runs without these settings; jobs are not affected"
			finding.Advice = "replace the older slurmds: update the image of their NodeSets"
			finding.Fix = kubectl(object.namespace, "get", "nodesets", "--output=wide")
			finding.Docs = "docs/installation.md#upgrade"
			findings = append(findings, finding)
		}
	}
	return findings
}

// confinement finds clusters whose jobs share the memory of their pod.
func confinement(s *Snapshot) []Finding {
	var findings []Finding
	for _, object := range s.reported() {
		controller := s.controller(object.namespace, object.name)
		if object.kind != "Controller" || controller == nil ||
			controller.Status.JobConfinement != slinkyv1beta1.JobConfinementNone {
			continue
		}
		finding := object.finding(Notice, "Unconfined", "spec.jobConfinement is None")
		if controller.Spec.JobConfinement == "" {
			finding.Severity = Warning
			finding.Problem = "jobs are not confined: spec.jobConfinement is not set, and the cluster is from before it"
		}
		finding.Effect = "a job that exceeds the memory of its pod ends all other jobs in it"
		finding.Advice = "confine jobs; this replaces all slurmd pods, each when its Slurm node is drained"
		finding.Fix = kubectl(object.namespace, "patch", "controller", object.name, "--type=merge",
			`--patch='{"spec":{"jobConfinement":"Cgroups"}}'`)
		finding.Docs = "docs/nodesets.md#confinement"
		findings = append(findings, finding)
	}
	return findings
}

func (s *Snapshot) controller(namespace, name string) *slinkyv1beta1.Controller {
	for i := range s.Objects.Controllers {
		if object := &s.Objects.Controllers[i]; object.Namespace == namespace && object.Name == name {
			return object
		}
	}
	return nil
}

// reservedNames finds NodeSets whose name has a meaning of its own in Slurm. The CRD refuses them with a partition,
// unless they are older than the CRD.
func reservedNames(s *Snapshot) []Finding {
	var findings []Finding
	for _, object := range s.reported() {
		if object.kind != "NodeSet" || object.name != "all" && object.name != "default" {
			continue
		}
		finding := object.finding(Warning, "ReservedName",
			fmt.Sprintf("Slurm gives the name %q a meaning of its own", object.name))
		finding.Effect = "Nodes=" + object.name + " in a partition does not mean the nodes of this NodeSet"
		finding.Advice = "create a NodeSet with another name, then delete this one, which drains its nodes"
		if set := s.nodeSet(object.namespace, object.name); set != nil && set.Spec.Partition.Enabled {
			finding.Severity, finding.Effect = Error, "the partition of the NodeSet is not one that jobs can name"
		}
		finding.Fix = kubectl(object.namespace, "get", "nodeset", object.name, "--output=yaml")
		finding.Docs = "docs/nodesets.md#partitions"
		findings = append(findings, finding)
	}
	return findings
}

// tokenSoon is how long before its end a token that is not renewed is a finding.
const tokenSoon = 24 * time.Hour

// tokens finds tokens that have expired although they should be renewed, or that will expire. The reason Expired covers
// those that have expired as their spec says.
func tokens(s *Snapshot) []Finding {
	var findings []Finding
	for i := range s.Objects.Tokens {
		token := &s.Objects.Tokens[i]
		if token.Status.ExpiresAt == nil {
			continue
		}
		left := token.Status.ExpiresAt.Sub(s.Now)
		renewed := token.Spec.Refresh == nil || *token.Spec.Refresh
		finding := Finding{
			Severity: Warning, Check: "TokenExpires", Object: "Token/" + token.Name, Namespace: token.Namespace,
			Effect: "users of the token are refused from then on", Docs: "docs/keys.md#tokens",
		}
		switch {
		case renewed && left <= 0:
			finding.Severity, finding.Check = Error, "TokenNotRenewed"
			finding.Problem = "the token expired " + s.age(token.Status.ExpiresAt.Time) + " ago, and was not renewed"
			finding.Effect, finding.Advice = "users of the token are refused", "see why the operator does not renew it"
			finding.Fix = kubectl(token.Namespace, "events", "--for=token/"+token.Name)
		case !renewed && left > 0 && left < tokenSoon:
			finding.Problem = "the token is not renewed, and expires at " +
				token.Status.ExpiresAt.UTC().Format(time.RFC3339)
			finding.Advice = "let the operator renew it"
			finding.Fix = kubectl(token.Namespace, "patch", "token", token.Name, "--type=merge",
				`--patch='{"spec":{"refresh":true}}'`)
		default:
			continue
		}
		findings = append(findings, finding)
	}
	return findings
}

// Clocks that differ by more than skewWarning are a finding, and by more than skewError an error: Slurm's daemons then
// refuse each other's credentials.
const (
	skewWarning = 10 * time.Second
	skewError   = 60 * time.Second
)

// clocks finds Kubernetes nodes whose clock differs from that of the API server: a kubelet writes its own time into its
// Lease, and the API server records when that was written.
func clocks(s *Snapshot) []Finding {
	var findings []Finding
	for i := range s.NodeLeases.Items {
		lease := &s.NodeLeases.Items[i]
		skew, known := skewOf(lease)
		if !known || skew.Abs() < skewWarning || !s.hosts(lease.Name) {
			continue
		}
		severity, direction := Warning, "ahead of"
		if skew.Abs() >= skewError {
			severity = Error
		}
		if skew < 0 {
			direction = "behind"
		}
		findings = append(findings, Finding{
			Severity: severity, Check: "ClockSkew", Object: "Node/" + lease.Name,
			Problem: fmt.Sprintf("its clock is %s %s that of the API server", skew.Abs().Round(time.Second), direction),
			Effect:  "Slurm's daemons refuse credentials and tokens from hosts whose clocks differ, and time limits are wrong",
			Advice:  "synchronize the clock of the host, for example with chrony",
			Fix:     "kubectl debug node/" + lease.Name + " --stdin --tty --image=busybox -- date --utc",
			Docs:    "docs/slurm-client.md#clocks",
		})
	}
	return findings
}

// skewOf returns how much the clock of a lease's holder is ahead of the API server's.
func skewOf(lease *coordinationv1.Lease) (time.Duration, bool) {
	if lease.Spec.RenewTime == nil {
		return 0, false
	}
	var written *metav1.Time
	for i := range lease.ManagedFields {
		if entry := &lease.ManagedFields[i]; entry.Time != nil && (written == nil || entry.Time.After(written.Time)) {
			written = entry.Time
		}
	}
	if written == nil {
		return 0, false
	}
	return lease.Spec.RenewTime.Sub(written.Time), true
}

// hosts reports whether a Kubernetes node runs a pod of the clusters.
func (s *Snapshot) hosts(node string) bool {
	for i := range s.Pods.Items {
		if _, _, _, ours := ownerOf(&s.Pods.Items[i]); ours && s.Pods.Items[i].Spec.NodeName == node {
			return true
		}
	}
	return false
}

// slurmNodes finds Slurm nodes that others have drained, or that are down, grouped by reason.
func slurmNodes(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range slices.Sorted(maps.Keys(s.SlurmNodes)) {
		namespace, controller, _ := strings.Cut(cluster, "/")
		groups := map[string][]*slurm.Node{}
		for i := range s.SlurmNodes[cluster] {
			node := &s.SlurmNodes[cluster][i]
			if check := closedBy(node); check != "" {
				key := check + "\x00" + node.Reason + "\x00" + node.ReasonBy
				groups[key] = append(groups[key], node)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			check, _, _ := strings.Cut(key, "\x00")
			findings = append(findings, s.closed(namespace, controller, check, groups[key]))
		}
	}
	return findings
}

// closedBy returns the check that finds a node; empty if it is open, if the operator drained it, or if it is being
// rebooted.
func closedBy(node *slurm.Node) string {
	switch {
	case node.DrainedByUs(), node.Flags.Has(slurm.FlagRebootIssued):
		return ""
	case node.State == slurm.StateDown && !node.Flags.HasAny(slurm.FlagPoweredDown|slurm.FlagPoweringDown):
		return "NodesDown"
	case node.HeldByOthers() && node.State != slurm.StateDown:
		return "NodesDrained"
	default:
		return ""
	}
}

func (s *Snapshot) closed(namespace, controller, check string, nodes []*slurm.Node) Finding {
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = node.Name
	}
	hosts := hostlist.Text(names)
	first := nodes[0]
	run := "kubectl slurm --namespace " + namespace + " --controller " + controller + " -- "
	finding := Finding{
		Severity: Warning, Check: check, Object: "Controller/" + controller, Namespace: namespace,
		Problem: hosts + " is drained", Effect: "no job starts there; running jobs go on",
		Advice: "resume the nodes when their cause is gone",
		Fix:    run + "scontrol update " + output.Quoted("nodename="+hosts) + " state=resume",
		Docs:   "docs/nodesets.md#drain",
	}
	if check == "NodesDown" {
		finding.Severity, finding.Problem, finding.Docs = Error, hosts+" is DOWN", runbook(slinkyv1beta1.ReasonNodesDown)
		finding.Effect = "no job runs or starts there"
		finding.Advice = "see why slurmd does not answer; a node that answers again returns by itself, or is resumed"
	}
	if first.Reason != "" {
		finding.Problem += fmt.Sprintf(": %q", first.Reason)
	}
	if first.ReasonBy != "" {
		finding.Problem += ", by " + first.ReasonBy
	}
	if !first.ReasonAt.IsZero() {
		finding.Problem += ", " + s.age(first.ReasonAt) + " ago"
	}
	return finding
}
