package kube

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// Forbidden is a request that the user has no right to.
type Forbidden struct {
	Verb      string
	Resource  schema.GroupResource
	Namespace string // empty for all namespaces, or if the resource has none
}

// Error names the missing right, and how to get it.
func (f *Forbidden) Error() string {
	where := "in all namespaces"
	switch {
	case f.Namespace != "":
		where = "in the namespace " + f.Namespace
	case f.Resource.Resource == Nodes.Resource:
		where = "in the cluster"
	}
	return fmt.Sprintf("you may not %s %s %s; %s", f.Verb, f.Resource, where, f.remedy())
}

func (f *Forbidden) remedy() string {
	switch {
	case f.Resource.Group == slinkyv1beta1.GroupName, f.Resource == Pods.GroupResource(),
		f.Resource == Events.GroupResource():
		return "ask for the ClusterRole slurm-user"
	default:
		return fmt.Sprintf("ask for a role with the verb %s for %s", f.Verb, f.Resource)
	}
}

// denied converts the API server's answer that the user has no right to a request.
func denied(err error, verb string, resource schema.GroupResource, namespace string) error {
	if apierrors.IsForbidden(err) {
		return &Forbidden{Verb: verb, Resource: resource, Namespace: namespace}
	}
	return err
}

// Rights collects the missing rights that a command can do without.
type Rights struct{ Missing []*Forbidden }

// Optional reports whether a read failed for a missing right, which it then collects. All other errors are returned.
func (r *Rights) Optional(err error) error {
	if forbidden, ok := errors.AsType[*Forbidden](err); ok {
		r.Missing = append(r.Missing, forbidden)
		return nil
	}
	return err
}

// Notes returns a line for each missing right.
func (r *Rights) Notes() []string {
	notes := make([]string, 0, len(r.Missing))
	for _, forbidden := range r.Missing {
		notes = append(notes, forbidden.Error())
	}
	return notes
}
