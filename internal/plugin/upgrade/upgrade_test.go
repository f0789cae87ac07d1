package upgrade_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/upgrade"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

func input(from, to string) *upgrade.Input {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "slurm", Name: name} }
	return &upgrade.Input{
		To: to,
		Controller: &slinkyv1beta1.Controller{
			ObjectMeta: named("slurm"), Spec: slinkyv1beta1.ControllerSpec{ExtraConf: "PrologTimeout=30\n"},
			Status: slinkyv1beta1.ControllerStatus{SlurmVersion: from},
		},
		Accounting: &slinkyv1beta1.Accounting{ObjectMeta: named("slurm")},
		RestAPIs:   []slinkyv1beta1.RestApi{{ObjectMeta: named("slurm")}},
		LoginSets:  []slinkyv1beta1.LoginSet{{ObjectMeta: named("login")}},
		NodeSets: []slinkyv1beta1.NodeSet{
			{ObjectMeta: named("gpu"), Status: slinkyv1beta1.NodeSetStatus{Replicas: 8, SlurmAllocated: 5}},
			{
				ObjectMeta: named("debug"),
				Spec: slinkyv1beta1.NodeSetSpec{UpdateStrategy: slinkyv1beta1.NodeSetUpdateStrategy{
					Type: slinkyv1beta1.OnDelete,
				}},
				Status: slinkyv1beta1.NodeSetStatus{Replicas: 1},
			},
		},
		Images: map[string]string{
			"slurmctld/slurm": "registry:5000/slurmctld:24.11", "slurmd/gpu": "registry:5000/slurmd-mpi:24.11@sha256:0123",
		},
		SlurmNodes: []slurm.Node{{Name: "gpu-0", Version: "24.05.1"}, {Name: "gpu-1", Version: "24.11.5"}},
	}
}

func TestPlan(t *testing.T) {
	plan, err := upgrade.Of(input("24.11.5", "26.05"))
	if err != nil {
		t.Fatal(err)
	}
	page := &output.Page{}
	plan.Draw(page)
	golden.Compare(t, "upgrade.txt", page.String())
}

func TestImpossibleUpgrades(t *testing.T) {
	for name, test := range map[string]struct{ from, to, want string }{
		"an unknown release":      {"24.11.5", "27.99", "is no release of Slurm"},
		"a downgrade":             {"26.05.5", "24.11", "restore a backup"},
		"more than three back":    {"23.11.1", "26.05", "upgrade to 25.05 first"},
		"an old release":          {"22.05.7", "24.11", "upgrade to 23.11 first"},
		"an unreachable cluster":  {"", "26.05", "Slurm does not answer"},
		"something else entirely": {"24.11.5", "latest", "is no release"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := upgrade.Of(input(test.from, test.to)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// The release in a tag is replaced, and nothing is invented.
func TestImagesOfSteps(t *testing.T) {
	for name, test := range map[string]struct{ spec, running, want string }{
		"of a running daemon":         {"", "mirror/slurmd:24.11.5", "mirror/slurmd:26.05"},
		"with a suffix":               {"", "mirror/slurmd:24.11-cuda12", "mirror/slurmd:26.05-cuda12"},
		"of the spec":                 {"own/slurmd:v24.11.5-1", "mirror/slurmd:24.11", "own/slurmd:26.05-1"},
		"without a release":           {"own/slurmd:production", "", "IMAGE_OF_SLURMD_26.05"},
		"without a tag":               {"registry:5000/slurmd", "", "IMAGE_OF_SLURMD_26.05"},
		"with a digest":               {"own/slurmd:24.11@sha256:abc", "", "own/slurmd:26.05"},
		"of nothing that is known":    {"", "", "IMAGE_OF_SLURMD_26.05"},
		"of a spec without a release": {"own/slurmd:v7", "own/slurmd:24.11", "IMAGE_OF_SLURMD_26.05"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input("24.11.5", "26.05")
			in.Images = map[string]string{}
			if test.running != "" {
				in.Images["slurmd/gpu"] = test.running
			}
			if test.spec != "" {
				in.NodeSets[0].Spec.Slurmd.Raw = []byte(`{"image":"` + test.spec + `"}`)
			}
			in.AddSpecs()
			plan, err := upgrade.Of(in)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, step := range plan.Steps {
				found = found || strings.Contains(step.Run, "nodeset/gpu") && strings.Contains(step.Run, `"`+test.want+`"`)
			}
			if !found {
				t.Errorf("no step has %s: %+v", test.want, plan.Steps)
			}
		})
	}
}
