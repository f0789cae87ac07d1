package nodeset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/podshape"
)

func TestExistingRevisionIsReused(t *testing.T) {
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	from := origin{Spec: podshape.NodeSet{ExtraConf: "Weight=1"}, Image: "slurmd:26.05"}
	var first revision
	if err := first.find(set, from); err != nil || first.live != nil {
		t.Fatalf("a new revision has the stored one %+v, %v", first.live, err)
	}
	stored := appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu-" + first.hash}, Data: runtime.RawExtension{Raw: first.data},
	}
	again := revision{history: []appsv1.ControllerRevision{stored}}
	if err := again.find(set, from); err != nil || again.live == nil || again.hash != first.hash ||
		again.collisions != nil {
		t.Errorf("the stored revision is found as %+v, %v", again, err)
	}
	other := revision{history: []appsv1.ControllerRevision{stored}}
	from.Spec.ExtraConf = "Weight=2"
	if err := other.find(set, from); err != nil || other.live != nil || other.hash == first.hash {
		t.Errorf("another revision is %+v, %v", other, err)
	}
}

func TestRevisionNameCollisionIsResolved(t *testing.T) {
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	from := origin{Image: "slurmd:26.05"}
	data, err := canonical(from)
	if err != nil {
		t.Fatal(err)
	}
	taken := appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu-" + hash(data, nil)},
		Data:       runtime.RawExtension{Raw: []byte(`{"other":1}`)},
	}
	found := revision{history: []appsv1.ControllerRevision{taken}}
	if err := found.find(set, from); err != nil || found.live != nil || found.collisions == nil ||
		*found.collisions != 1 || found.hash == hash(data, nil) {
		t.Errorf("the revision is %+v, %v", found, err)
	}
}
