package podshape_test

import (
	"slices"
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/podshape"
)

func TestChangedFieldsAreNamed(t *testing.T) {
	before := slinkyv1beta1.ControllerSpec{
		Slurmctld: fragment(`{"image":"a"}`), JWTKeyRef: &slinkyv1beta1.SecretKeyReference{Name: "key"},
	}
	after := slinkyv1beta1.ControllerSpec{
		Slurmctld: fragment(`{"image":"b"}`), Logfile: fragment(`{"image":"c"}`), ExtraConf: "MaxJobCount=1",
	}
	after.HA.Enabled = true
	changed := podshape.Changed(podshape.OfController(&before), podshape.OfController(&after))
	if !slices.Equal(changed, []string{"spec.ha.enabled", "spec.jwtKeyRef", "spec.logfile", "spec.slurmctld"}) {
		t.Errorf("got changed fields %q", changed)
	}
	if changed := podshape.Changed(podshape.OfController(&after), podshape.OfController(&after)); len(changed) > 0 {
		t.Errorf("got changed fields %q, want none", changed)
	}
}

func fragment(raw string) slinkyv1beta1.ContainerFragment {
	var made slinkyv1beta1.ContainerFragment
	made.Raw = []byte(raw)
	return made
}
