package doctor

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
)

// A reported is a custom resource with what the operator reports about it.
type reported struct {
	fixer
	meta       *metav1.ObjectMeta
	conditions []metav1.Condition
	observed   int64
	// extraConf is that of a Controller.
	extraConf string
}

// reported returns all custom resources.
func (s *Snapshot) reported() []reported {
	var all []reported
	add := func(kind string, object *metav1.ObjectMeta, controller string, conditions []metav1.Condition, seen int64) {
		all = append(all, reported{
			fixer{kind, object.Namespace, object.Name, controller}, object, conditions, seen, "",
		})
	}
	for i := range s.Objects.Controllers {
		object := &s.Objects.Controllers[i]
		add("Controller", &object.ObjectMeta, object.Name, object.Status.Conditions, object.Status.ObservedGeneration)
		all[len(all)-1].extraConf = object.Spec.ExtraConf
	}
	for i := range s.Objects.Accountings {
		object := &s.Objects.Accountings[i]
		add("Accounting", &object.ObjectMeta, object.Name, object.Status.Conditions, object.Status.ObservedGeneration)
	}
	for i := range s.Objects.RestAPIs {
		object := &s.Objects.RestAPIs[i]
		add("RestApi", &object.ObjectMeta, object.Spec.ControllerRef.Name, object.Status.Conditions,
			object.Status.ObservedGeneration)
	}
	for i := range s.Objects.LoginSets {
		object := &s.Objects.LoginSets[i]
		add("LoginSet", &object.ObjectMeta, object.Spec.ControllerRef.Name, object.Status.Conditions,
			object.Status.ObservedGeneration)
	}
	for i := range s.Objects.NodeSets {
		object := &s.Objects.NodeSets[i]
		add("NodeSet", &object.ObjectMeta, object.Spec.ControllerRef.Name, object.Status.Conditions,
			object.Status.ObservedGeneration)
	}
	for i := range s.Objects.Tokens {
		object := &s.Objects.Tokens[i]
		add("Token", &object.ObjectMeta, "", object.Status.Conditions, object.Status.ObservedGeneration)
	}
	return all
}

// finding returns a finding about the object, with the page about the check.
func (r *reported) finding(severity Severity, check, problem string) Finding {
	return Finding{
		Severity: severity, Check: check, Object: r.kind + "/" + r.name, Namespace: r.namespace, Problem: problem,
		Docs: runbook(check),
	}
}

// patience is how long the operator may take to report about a new object.
const patience = 2 * time.Minute

// unreported finds objects that the operator has not reported about.
func unreported(s *Snapshot) []Finding {
	var findings []Finding
	for _, object := range s.reported() {
		if len(object.conditions) > 0 || s.Now.Sub(object.meta.CreationTimestamp.Time) < patience {
			continue
		}
		findings = append(findings, Finding{
			Severity: Error, Check: "NotReconciled", Object: object.kind + "/" + object.name, Namespace: object.namespace,
			Problem: "the operator has not reported anything about it since it was created " +
				s.age(object.meta.CreationTimestamp.Time) + " ago",
			Effect: "nothing happens for this object",
			Advice: "see whether the operator runs and watches the namespace",
			Fix:    "kubectl get deployments --all-namespaces --selector=app.kubernetes.io/name=slurm-operator",
			Docs:   "docs/installation.md#the-operator",
		})
	}
	return findings
}

// age returns how long ago a time was.
func (s *Snapshot) age(then time.Time) string { return duration.HumanDuration(max(s.Now.Sub(then), 0)) }

// namespaces returns the namespaces of the clusters.
func (s *Snapshot) namespaces() []string {
	var names []string
	for i := range s.Objects.Controllers {
		names = append(names, s.Objects.Controllers[i].Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nodeSet returns a NodeSet; nil if there is none.
func (s *Snapshot) nodeSet(namespace, name string) *slinkyv1beta1.NodeSet {
	for i := range s.Objects.NodeSets {
		if set := &s.Objects.NodeSets[i]; set.Namespace == namespace && set.Name == name {
			return set
		}
	}
	return nil
}

// Select returns the objects of one cluster. Tokens stay: what they are signed with does not say which cluster they are
// for before its keys are generated.
func Select(objects *kube.Objects, controller string) kube.Objects {
	selected := *objects
	if controller == "" {
		return selected
	}
	selected.Controllers = keep(objects.Controllers, func(object *slinkyv1beta1.Controller) bool {
		return object.Name == controller
	})
	selected.Accountings = keep(objects.Accountings, func(object *slinkyv1beta1.Accounting) bool {
		return slices.ContainsFunc(selected.Controllers, func(user slinkyv1beta1.Controller) bool {
			return user.Spec.AccountingRef != nil && user.Spec.AccountingRef.Name == object.Name
		})
	})
	selected.RestAPIs = keep(objects.RestAPIs, func(object *slinkyv1beta1.RestApi) bool {
		return object.Spec.ControllerRef.Name == controller
	})
	selected.LoginSets = keep(objects.LoginSets, func(object *slinkyv1beta1.LoginSet) bool {
		return object.Spec.ControllerRef.Name == controller
	})
	selected.NodeSets = keep(objects.NodeSets, func(object *slinkyv1beta1.NodeSet) bool {
		return object.Spec.ControllerRef.Name == controller
	})
	return selected
}

func keep[T any](all []T, wanted func(*T) bool) []T {
	var kept []T
	for i := range all {
		if wanted(&all[i]) {
			kept = append(kept, all[i])
		}
	}
	return kept
}

// firstLine shortens a text to its first line.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// Names returns the names of custom resources with their kinds, such as NodeSet/gpu.
func Names(objects kube.Objects) []string {
	var names []string
	for _, object := range (&Snapshot{Objects: objects}).reported() {
		names = append(names, object.kind+"/"+object.name)
	}
	return names
}
