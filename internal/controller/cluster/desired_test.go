package cluster

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

func TestStatefulSetInheritsPodMetadata(t *testing.T) {
	set, err := statefulSet(newScope(promoteWith("good", "new")), &plan{image: "new"})
	if err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(set.Annotations)
	want["example.com/a"] = "b"
	inherit(set, slinkyv1beta1.Metadata{
		Labels: map[string]slinkyv1beta1.LabelValue{"team": "hpc", "app.kubernetes.io/name": "mine"},
		Annotations: map[string]string{
			"example.com/a": "b", annotationKeepsState: "mine", "kubectl.kubernetes.io/restartedAt": "now",
		},
	})
	if set.Labels["team"] != "hpc" || set.Labels["app.kubernetes.io/name"] != "slurmctld" {
		t.Errorf("its labels are %v", set.Labels)
	}
	if diff := cmp.Diff(want, set.Annotations); diff != "" {
		t.Errorf("its annotations differ (-want +got):\n%s", diff)
	}
}
