package cluster

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestGres(t *testing.T) {
	const own = "Name=gpu File=/dev/nvidia0\n"
	include := slurmconf.IncludePodGres
	tests := map[string]struct {
		slurmd, extraConf string
		given             []clusterconf.File
		wantTypes         string
		wantConf          string
	}{
		"no file without GRES": {slurmd: `{"resources":{"limits":{"cpu":"4"}}}`},
		"GPUs are detected in the pods": {
			slurmd: `{"resources":{"limits":{"nvidia.com/gpu":"4"}}}`, wantTypes: "GresTypes=gpu\n", wantConf: include,
		},
		"GRES of extraConf": {extraConf: "Gres=nic:2", wantTypes: "GresTypes=nic\n"},
		"a file of the user takes precedence": {
			extraConf: "Gres=gpu:1",
			given:     []clusterconf.File{{Name: slurmconf.GresFile, Content: own, ConfigMap: "mine"}},
			wantTypes: "GresTypes=gpu\n", wantConf: own,
		},
		"an invalid NodeSet is skipped": {extraConf: "Gres"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
			set.Spec.Slurmd.Raw, set.Spec.ExtraConf = []byte(test.slurmd), test.extraConf
			scope := newScope(func(scope *scope) {
				scope.nodeSets = []slinkyv1beta1.NodeSet{set}
				scope.files = map[clusterconf.Use][]clusterconf.File{clusterconf.ConfigFile: test.given}
			})
			candidate, problem := build(scope)
			if problem != nil {
				t.Fatal(problem.Message)
			}
			if got := candidate.files[slurmconf.GresFile]; got != test.wantConf {
				t.Errorf("%s is %q, want %q", slurmconf.GresFile, got, test.wantConf)
			}
			if _, there := candidate.files[slurmconf.PodGresFile]; test.wantConf == include && !there {
				t.Error("the file that gres.conf includes is missing, and slurmctld would wait for it")
			}
			conf := candidate.files[slurmconf.FileName]
			if strings.Contains(conf, "GresTypes") != (test.wantTypes != "") ||
				!strings.Contains(conf, test.wantTypes) {
				t.Errorf("slurm.conf is\n%s", conf)
			}
		})
	}
	if _, problem := build(newScope(func(scope *scope) {
		scope.files = map[clusterconf.Use][]clusterconf.File{}
		scope.files[clusterconf.ConfigFile] = []clusterconf.File{
			{Name: slurmconf.GresFile, Content: own, ConfigMap: "one"},
			{Name: slurmconf.GresFile, Content: own, ConfigMap: "two"},
		}
	})); problem == nil {
		t.Error("two files with the same name are accepted")
	}
}

// slurmctld forgets what a running job has of a GRES type that it does not know. So a type stays until no node has it.
func TestGresTypesStayWhileNodesHaveThem(t *testing.T) {
	set := slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	set.Spec.Slurmd.Raw = []byte(`{"resources":{"limits":{"nvidia.com/gpu":"4"}}}`)
	before, problem := build(newScope(func(s *scope) { s.nodeSets = []slinkyv1beta1.NodeSet{set} }))
	if problem != nil {
		t.Fatal(problem.Message)
	}
	changed := *set.DeepCopy()
	changed.Spec.Slurmd.Raw = []byte(`{"resources":{"limits":{"cpu":"4"}}}`)
	for name, test := range map[string]struct {
		sets  []slinkyv1beta1.NodeSet
		nodes *slurm.Snapshot
		stays bool
	}{
		"a node has it":                {[]slinkyv1beta1.NodeSet{changed}, nodesWith("(null)", "nic:1,gpu:a:4(S:0-1)"), true},
		"a node of a removed NodeSet":  {nil, nodesWith("gpu:4"), true},
		"the nodes are unknown":        {[]slinkyv1beta1.NodeSet{changed}, nil, true},
		"no node has it any more":      {[]slinkyv1beta1.NodeSet{changed}, nodesWith("", "gpux:1"), false},
		"the NodeSet asks for it":      {[]slinkyv1beta1.NodeSet{set}, nodesWith(), true},
		"nothing is left of the nodes": {nil, nodesWith(), false},
	} {
		t.Run(name, func(t *testing.T) {
			after, problem := build(newScope(func(s *scope) {
				s.nodeSets, s.nodes = test.sets, test.nodes
				s.promoted = &promoted{hash: before.hash, image: "new", files: before.files}
			}))
			if problem != nil {
				t.Fatal(problem.Message)
			}
			types, _ := after.document.Get("GresTypes")
			if (types == "gpu") != test.stays || (after.files[slurmconf.GresFile] != "") != test.stays {
				t.Errorf("GresTypes=%s, gres.conf %q", types, after.files[slurmconf.GresFile])
			}
		})
	}
}

// nodesWith returns nodes with GRES as Slurm reports them.
func nodesWith(gres ...string) *slurm.Snapshot {
	snapshot := &slurm.Snapshot{}
	for _, each := range gres {
		snapshot.Nodes = append(snapshot.Nodes, &slurm.Node{State: slurm.StateMixed, GRES: each})
	}
	return snapshot
}
