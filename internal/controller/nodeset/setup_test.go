package nodeset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

func TestOwnerOfSlurmNodeWithoutPod(t *testing.T) {
	comment := func(owner slurm.Owner) string { return owner.String() }
	own := slurm.Owner{Namespace: "hpc", NodeSetName: "gpu", NodeSetUID: "u"}
	for name, test := range map[string]struct {
		nodes []*slurm.Node
		want  string
	}{
		"its record names a NodeSet":                      {[]*slurm.Node{{Name: "m1", Comment: comment(own)}}, "hpc/gpu"},
		"its record is deleted":                           {nil, ""},
		"its record has no comment":                       {[]*slurm.Node{{Name: "m1"}}, ""},
		"its record has a comment of a user":              {[]*slurm.Node{{Name: "m1", Comment: "rack 7"}}, ""},
		"its record names only a pod":                     {[]*slurm.Node{{Name: "m1", Comment: comment(own.Pod())}}, ""},
		"its record names a NodeSet of another namespace": {[]*slurm.Node{{Name: "m1", Comment: foreign}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			changed := slurm.Event{Cluster: slurm.Key{Namespace: "hpc", Name: "slurm"}, Node: "m1"}
			set, recorded := ownerOf(&slurm.Snapshot{Nodes: test.nodes}, changed)
			if recorded != (test.want != "") || recorded && set.String() != test.want {
				t.Errorf("the NodeSet is %s: %t, want %q", set, recorded, test.want)
			}
		})
	}
	if _, recorded := ownerOf(nil, slurm.Event{Node: "m1"}); recorded {
		t.Error("there is a NodeSet without a snapshot of Slurm")
	}
}

var foreign = slurm.Owner{Namespace: "other", NodeSetName: "gpu", NodeSetUID: "u"}.String()

func TestObjectsOfControllersAreWatchedByName(t *testing.T) {
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm", UID: "c"}}
	owners := []metav1.OwnerReference{
		*metav1.NewControllerRef(controller, slinkyv1beta1.SchemeGroupVersion.WithKind("Controller")),
	}
	for name, test := range map[string]struct {
		object metav1.ObjectMeta
		want   bool
	}{
		"the configuration":            {metav1.ObjectMeta{Name: "slurm-config", OwnerReferences: owners}, true},
		"a configuration without one":  {metav1.ObjectMeta{Name: "slurm-config"}, false},
		"a candidate":                  {metav1.ObjectMeta{Name: "slurm-config-candidate", OwnerReferences: owners}, false},
		"that of another Controller":   {metav1.ObjectMeta{Name: "b-config", OwnerReferences: owners}, false},
		"another object of that owner": {metav1.ObjectMeta{Name: "slurm-workers", OwnerReferences: owners}, false},
	} {
		t.Run(name, func(t *testing.T) {
			deletion := event.DeleteEvent{Object: &corev1.ConfigMap{ObjectMeta: test.object}}
			if got := ofController(naming.Configuration).Delete(deletion); got != test.want {
				t.Errorf("its deletion is an event: %t, want %t", got, test.want)
			}
		})
	}
}
