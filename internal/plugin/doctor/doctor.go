// Package doctor finds what is wrong with Slurm clusters, and says how to repair it.
//
// A Snapshot is what was read; Examine is a pure function of it. There is a check for each reason of a condition
// (reasons.go) and one for each mistake that conditions do not show: of the operator and its webhook, pods, volumes,
// budgets, quotas, clocks, tokens and Slurm nodes. A check that needs objects that could not be read is skipped, and
// the missing right is a note of the result: a list that is not Known is not an empty one.
package doctor

import (
	"cmp"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A Severity says how urgent a finding is.
type Severity string

// The severities.
const (
	// Error: something does not work, or jobs are at risk.
	Error Severity = "Error"
	// Warning: it works, and will not for long or not in all cases.
	Warning Severity = "Warning"
	// Notice: a user has chosen it, or may not know about it. It does not change the exit code.
	Notice Severity = "Notice"
)

// rank orders severities, the most urgent first.
func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Notice}, s) }

// A Finding is something that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	// Check is what found it: the reason of a condition, or the name of a check.
	Check string `json:"check"`
	// Object is the object concerned, such as NodeSet/gpu, and Namespace its namespace; empty if it has none.
	Object    string `json:"object"`
	Namespace string `json:"namespace,omitempty"`
	// Problem is what is wrong, and Effect what that means for jobs and users.
	Problem string `json:"problem"`
	Effect  string `json:"effect"`
	// Advice is what to do, and Fix is the command for it.
	Advice string `json:"advice,omitempty"`
	Fix    string `json:"fix,omitempty"`
	// Docs is the page of the documentation.
	Docs string `json:"docs"`
}

// A Result is the answer of the command.
type Result struct {
	Findings []Finding `json:"findings"`
	// Clusters are the Controllers that were examined, as namespace/name.
	Clusters []string `json:"clusters"`
	// Notes are about what could not be examined, such as for missing rights.
	Notes []string `json:"notes,omitempty"`
}

// ExitCode is 2 with errors, 1 with warnings, and otherwise 0.
func (r *Result) ExitCode() int {
	code := 0
	for i := range r.Findings {
		switch r.Findings[i].Severity {
		case Error:
			return 2
		case Warning:
			code = 1
		case Notice:
		}
	}
	return code
}

// A List is a list of objects that may be unknown, because the user may not read it.
type List[T any] struct {
	Items []T
	Known bool
}

// A Snapshot is what the checks examine.
type Snapshot struct {
	Now time.Time
	// Objects are the custom resources of the clusters.
	Objects kube.Objects
	// Pods, Claims, Budgets and Quotas are all of the clusters' namespaces.
	Pods    List[corev1.Pod]
	Claims  List[corev1.PersistentVolumeClaim]
	Budgets List[policyv1.PodDisruptionBudget]
	Quotas  List[corev1.ResourceQuota]
	// StorageClasses, Nodes and NodeLeases are those of the Kubernetes cluster.
	StorageClasses List[storagev1.StorageClass]
	Nodes          List[corev1.Node]
	NodeLeases     List[coordinationv1.Lease]
	// Deployments are those of the operator and of its webhook, and Leases the leases of their leaders.
	Deployments List[appsv1.Deployment]
	Leases      List[coordinationv1.Lease]
	// Webhooks are the configurations that review the custom resources, and Endpoints those of their Services.
	Webhooks  List[admissionv1.ValidatingWebhookConfiguration]
	Endpoints List[discoveryv1.EndpointSlice]
	// ResourceTypes are the CRDs.
	ResourceTypes List[ResourceType]
	// SlurmNodes are the Slurm nodes of each cluster whose slurmctld answers, by namespace/name of the Controller.
	SlurmNodes map[string][]slurm.Node
	// Logs are the last lines of containers that do not become ready, by namespace/pod.
	Logs map[string]string
	// Notes are about what could not be read.
	Notes []string
}

// checks are all checks. Each is one of the functions of this package.
var checks = []func(*Snapshot) []Finding{
	operators, leaders, resourceTypes, webhooks,
	conditions, unreported, heldBack, confinement, reservedNames,
	pods, logs, takenNames, stuck,
	claims, budgets, quotas,
	tokens, clocks,
	slurmNodes,
}

// Examine runs all checks.
func Examine(snapshot *Snapshot) Result {
	result := Result{Findings: []Finding{}, Clusters: []string{}, Notes: snapshot.Notes}
	for i := range snapshot.Objects.Controllers {
		controller := &snapshot.Objects.Controllers[i]
		result.Clusters = append(result.Clusters, controller.Namespace+"/"+controller.Name)
	}
	for _, check := range checks {
		result.Findings = append(result.Findings, check(snapshot)...)
	}
	slices.SortStableFunc(result.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity.rank(), b.Severity.rank()), cmp.Compare(a.Namespace, b.Namespace))
	})
	return result
}

// A fixer makes commands and texts for one object.
type fixer struct{ kind, namespace, name, controller string }

// fill replaces {kind}, {namespace}, {name} and {controller}. Kinds are in lower case, as users type them.
func (f fixer) fill(text string) string {
	return strings.NewReplacer("{kind}", strings.ToLower(f.kind), "{namespace}", f.namespace, "{name}", f.name,
		"{controller}", f.controller).Replace(text)
}

// kubectl returns a command in a namespace.
func kubectl(namespace string, words ...string) string {
	return strings.Join(append([]string{"kubectl", "--namespace", namespace}, words...), " ")
}
