package clusterconf_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestKeysThatChangeDespiteJobs(t *testing.T) {
	for value, want := range map[string][]string{
		"": {}, "PrologFlags": {"PrologFlags"}, "PrologFlags, SelectType,": {"PrologFlags", "SelectType"},
	} {
		controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{slinkyv1beta1.AnnotationChangeDespiteJobs: value},
		}}
		if got := clusterconf.DespiteJobs(controller); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

func TestStateIsKeptOnlyOnTheSamePVC(t *testing.T) {
	with := func(claim string) *slinkyv1beta1.Controller {
		return &slinkyv1beta1.Controller{Spec: slinkyv1beta1.ControllerSpec{
			Persistence: slinkyv1beta1.ControllerPersistence{Enabled: new(claim != ""), ExistingClaim: claim},
		}}
	}
	for name, test := range map[string]struct {
		before, after string
		keeps         bool
	}{
		"the same PVC": {"a", "a", true}, "another PVC": {"a", "b", false}, "no PVC": {"", "", false},
		"a new PVC": {"", "a", false}, "no PVC any more": {"a", "", false},
	} {
		if got := clusterconf.KeepsState(with(test.before), with(test.after)); got != test.keeps {
			t.Errorf("%s: keeps its state: %t", name, got)
		}
	}
}

func TestContainsIfAnyoneNeedsIt(t *testing.T) {
	ssh := slinkyv1beta1.NodeSet{}
	ssh.Spec.SSH.Enabled = true
	for name, test := range map[string]struct {
		sets     []slinkyv1beta1.NodeSet
		inForce  string
		contains bool
	}{
		"neither":             {[]slinkyv1beta1.NodeSet{{}}, "PrologFlags=Alloc\n", false},
		"a NodeSet with sshd": {[]slinkyv1beta1.NodeSet{{}, ssh}, "", true},
		"in force":            {nil, "PrologFlags=contain\n", true},
		"confined jobs":       {nil, "ProctrackType=proctrack/cgroup\n", true},
	} {
		inForce, err := slurmconf.Parse(test.inForce)
		if err != nil {
			t.Fatal(err)
		}
		if got := clusterconf.Contains(test.sets, inForce); got != test.contains {
			t.Errorf("%s: %t", name, got)
		}
	}
}
