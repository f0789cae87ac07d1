package nodeconf_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func nodeSet(slurmd, extraConf string, rules ...slinkyv1beta1.GresRule) *slinkyv1beta1.NodeSet {
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	set.Spec.Slurmd.Raw = []byte(slurmd)
	set.Spec.ExtraConf = extraConf
	set.Spec.Gres = rules
	return set
}

func TestConf(t *testing.T) {
	tests := map[string]struct {
		slurmd, template, extraConf string
		rules                       []slinkyv1beta1.GresRule
		want                        string
	}{
		"has only the feature without limits": {want: "Features=ns"},
		"uses the limits of CPUs and memory, less the reserve of 128 MiB and 1 %": {
			slurmd: `{"resources":{"limits":{"cpu":"4","memory":"8Gi"},"requests":{"cpu":"2","memory":"1Gi"}}}`,
			want:   "Features=ns CPUs=4 RealMemory=7982",
		},
		"ignores requests": {
			slurmd: `{"resources":{"limits":{"memory":"8Gi"},"requests":{"cpu":"2"}}}`, want: "Features=ns RealMemory=7982",
		},
		"uses the pod's limits if the container has none": {
			slurmd:   `{"resources":{"limits":{"memory":"8Gi"}}}`,
			template: `{"resources":{"limits":{"cpu":"6","memory":"64Gi"}}}`, want: "Features=ns CPUs=6 RealMemory=7982",
		},
		"rounds down fractions": {
			slurmd: `{"resources":{"limits":{"cpu":"2900m","memory":"1500000k"}}}`,
			want:   "Features=ns CPUs=2 RealMemory=1288",
		},
		"leaves at least one CPU": {slurmd: `{"resources":{"limits":{"cpu":"100m"}}}`, want: "Features=ns CPUs=1"},
		"is overridden by the user, ignoring case": {
			slurmd:    `{"resources":{"limits":{"cpu":"4","memory":"8Gi"}}}`,
			extraConf: "realmemory=7000 CPUS=3\nWeight=5", want: "Features=ns CPUS=3 realmemory=7000 Weight=5",
		},
		"uses the last of two lines": {extraConf: "Weight=5\nweight=6", want: "Features=ns weight=6"},
		"accepts older names": {
			slurmd: `{"resources":{"limits":{"cpu":"4"}}}`, extraConf: "Procs=2 Feature=a",
			want: "Features=ns,a Procs=2",
		},
		"keeps its own feature and adds the user's": {extraConf: "Features=a,ns,b", want: "Features=ns,a,b"},
		"has the prefix of host names as a feature": {
			template: `{"hostname":"slinky-"}`, extraConf: "Features=a,slinky", want: "Features=ns,slinky,a",
		},
		"has a feature once":                        {template: `{"hostname":"ns-"}`, want: "Features=ns"},
		"omits a prefix that Slurm does not accept": {template: `{"hostname":"a,b="}`, want: "Features=ns"},
		"omits CPUs if the user sets a layout": {
			slurmd: `{"resources":{"limits":{"cpu":"4"}}}`, extraConf: "Sockets=2 CoresPerSocket=1",
			want: "Features=ns Sockets=2 CoresPerSocket=1",
		},
		"reads line breaks, comments and quotes": {
			extraConf: "Weight=5 # heavy\n\nReason=\"not yet\"\n", want: `Features=ns Weight=5 Reason="not yet"`,
		},
		"counts NVIDIA GPUs": {
			slurmd: devices("nvidia.com/gpu", "8"), want: "Features=ns Gres=gpu:8",
		},
		"counts AMD GPUs": {
			slurmd: devices("amd.com/gpu", "4"), want: "Features=ns Gres=gpu:4",
		},
		"counts Intel GPUs": {
			slurmd: devices("gpu.intel.com/xe", "2"), want: "Features=ns Gres=gpu:2",
		},
		"uses the profile of a slice as its type": {
			slurmd: devices("nvidia.com/mig-1g.10gb", "1"), want: "Features=ns Gres=gpu:1g.10gb:1",
		},
		"ignores unknown resources": {slurmd: devices("example.com/fpga", "1"), want: "Features=ns"},
		"is overridden by the user's Gres": {
			slurmd: devices("nvidia.com/gpu", "8"), extraConf: "gres=gpu:h100:8", want: "Features=ns gres=gpu:h100:8",
		},
		"counts resources with a rule": {
			slurmd: devices("example.com/fpga", "2"), rules: rule("example.com/fpga", "fpga"),
			want: "Features=ns Gres=fpga:2",
		},
		"prefers a rule to the operator's table": {
			slurmd: devices("nvidia.com/gpu", "8"), rules: rule("nvidia.com/gpu", "gpu:h100"),
			want: "Features=ns Gres=gpu:h100:8",
		},
		"omits devices with count 0": {slurmd: devices("nvidia.com/gpu", "0"), want: "Features=ns"},
		"adds up two resources of the same GRES": {
			slurmd: `{"resources":{"limits":{"nvidia.com/gpu":"1","amd.com/gpu":"2"}}}`, want: "Features=ns Gres=gpu:3",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := nodeSet(test.slurmd, test.extraConf, test.rules...)
			set.Spec.Template.Spec.Raw = []byte(test.template)
			node, err := nodeconf.Of(set)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, node.Conf()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInvalidExtraConfIsRejected(t *testing.T) {
	for name, extraConf := range map[string]string{
		"an open quote": `Reason="a`, "a word alone": "Weight", "the pod's name": "nodename=x", "the pod's port": "Port=1",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := nodeconf.Of(nodeSet("", extraConf)); err == nil || !strings.HasPrefix(err.Error(), "spec.extraConf: ") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestGresConf(t *testing.T) {
	tests := map[string]struct {
		slurmd, extraConf string
		rules             []slinkyv1beta1.GresRule
		types             []string
		want              string
	}{
		"is empty without GPUs": {slurmd: devices("cpu", "4")},
		"is empty for GRES without devices": {
			slurmd: devices("example.com/fpga", "2"), rules: rule("example.com/fpga", "fpga"), types: []string{"fpga"},
		},
		"names a file for each GPU": {
			slurmd: devices("nvidia.com/gpu", "8"), types: []string{"gpu"},
			want: "Name=gpu File=/d/gpu[0-7] Flags=nvidia_gpu_env\n",
		},
		"sets only the vendor's variables": {
			slurmd: devices("amd.com/gpu", "1"), types: []string{"gpu"},
			want: "Name=gpu File=/d/gpu[0-0] Flags=amd_gpu_env\n",
		},
		"follows the user's Gres": {
			slurmd: devices("nvidia.com/gpu", "2"), extraConf: "Gres=gpu:h100:2(S:0),craynetwork:4",
			types: []string{"gpu", "craynetwork"},
			want:  "Name=gpu Type=h100 File=/d/gpu[0-1] Flags=nvidia_gpu_env\n",
		},
		"has a line per type": {
			slurmd: `{"resources":{"limits":{"nvidia.com/mig-1g.10gb":"2","nvidia.com/mig-2g.20gb":"1"}}}`, types: []string{"gpu"},
			want: "Name=gpu Type=1g.10gb File=/d/gpu[0-1] Flags=nvidia_gpu_env\nName=gpu Type=2g.20gb File=/d/gpu[2-2] Flags=nvidia_gpu_env\n",
		},
		"has no files for an implausible count": {extraConf: "Gres=gpu:1000000", types: []string{"gpu"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node, err := nodeconf.Of(nodeSet(test.slurmd, test.extraConf, test.rules...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, node.GresConf("/d")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.types, node.GresTypes()); diff != "" {
				t.Error(diff)
			}
			if node.HasDevices() != (test.want != "") || (node.DeviceScript("/d") != "") != (test.want != "") {
				t.Errorf("it has devices: %t, script %q", node.HasDevices(), node.DeviceScript("/d"))
			}
		})
	}
}

// FuzzConf checks that the user's text only affects its own parameters, and overrides the operator's.
func FuzzConf(f *testing.F) {
	for _, seed := range []string{"Weight=1", "Features=a,b", `Reason="a b" CPUs=1`, "Gres=gpu:4,nic:1(S:0)", "a=\\\"x y\\\"", "# c\nx=1", "x=a\\\ny=b", "Feature=", `x=""`, `x=a"b`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, extraConf string) {
		node, err := nodeconf.Of(nodeSet(`{"resources":{"limits":{"cpu":"4","memory":"8Gi","nvidia.com/gpu":"2"}}}`, extraConf))
		if err != nil {
			return
		}
		extra, err := slurmconf.ParseNode(extraConf)
		if err != nil {
			t.Fatalf("accepted text is rejected: %v", err)
		}
		want := map[string]string{}
		for _, pair := range extra {
			want[strings.ToLower(pair.Key)] = pair.Value
		}
		for key, value := range read(t, node.Conf()) {
			switch theirs, given := want[key]; {
			case key == "features":
				if value != "ns" && !strings.HasPrefix(value, "ns,") {
					t.Errorf("the features are %q", value)
				}
			case given && theirs != value:
				t.Errorf("%s is %q, want the user's %q", key, value, theirs)
			}
		}
		for key := range want {
			if _, there := read(t, node.Conf())[key]; !there && key != "feature" && key != "procs" && key != "cpus" {
				t.Errorf("%s is missing in %q", key, node.Conf())
			}
		}
	})
}

// read parses a line as Slurm does on a command line: no comments, no backslashes.
func read(t *testing.T, conf string) map[string]string {
	t.Helper()
	pairs, err := slurmconf.ParseNode(strings.NewReplacer(`\`, `\\`, `#`, `\#`).Replace(conf))
	if err != nil {
		t.Fatalf("%q: %v", conf, err)
	}
	values := map[string]string{}
	for _, pair := range pairs {
		values[strings.ToLower(pair.Key)] = pair.Value
	}
	return values
}

func devices(resource, count string) string {
	return `{"resources":{"limits":{"` + resource + `":"` + count + `"}}}`
}

func rule(resource, gres string) []slinkyv1beta1.GresRule {
	return []slinkyv1beta1.GresRule{{Resource: resource, Gres: gres}}
}
