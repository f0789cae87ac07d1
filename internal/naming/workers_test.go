package naming_test

import (
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

func TestWorkerNames(t *testing.T) {
	tests := map[string]struct {
		hostname  string
		padding   int32
		pod, host string
	}{
		"named after the NodeSet": {pod: "gpu-7", host: "gpu-7"},
		"padded ordinals":         {padding: 3, pod: "gpu-007", host: "gpu-007"},
		"hostname prefix":         {hostname: "dgx", padding: 2, pod: "gpu-07", host: "dgx07"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := gpuSet(test.hostname)
			set.Spec.OrdinalPadding = test.padding
			if pod, host := naming.WorkerPod(set, 7), naming.WorkerHost(set, 7); pod != test.pod || host != test.host {
				t.Errorf("pod %s, host %s, want %s, %s", pod, host, test.pod, test.host)
			}
		})
	}
}

func TestWorkerGroup(t *testing.T) {
	for hostname, want := range map[string]string{
		"": "gpu", "slinky-": "slinky", "slinky": "slinky", "a-b--": "a-b", "-": "gpu",
	} {
		if got := naming.WorkerGroup(gpuSet(hostname)); got != want {
			t.Errorf("the group of the prefix %q is %s, want %s", hostname, got, want)
		}
	}
}

func TestWorkerNamesInDaemonSetMode(t *testing.T) {
	valid := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	long := strings.Repeat("rack1-", 12)
	seen := map[string]string{}
	for _, node := range []string{"n1", "a-b", "a.b", "a-b.", "ip-10-0-0-1.ec2.internal", long + "x", long + "y",
		strings.Repeat("x", 63)} {
		for _, name := range []string{naming.NodeWorkerHost(gpuSet(""), node), naming.NodeWorkerPod(gpuSet(""), node)} {
			if !valid.MatchString(name) || len(name) > 63 {
				t.Errorf("node %s gives %q, which is not a DNS label", node, name)
			}
			if other, taken := seen[name]; taken && other != node {
				t.Errorf("nodes %s and %s both give %s", node, other, name)
			}
			seen[name] = node
		}
	}
	if host := naming.NodeWorkerHost(gpuSet(""), "n1"); host != "n1" {
		t.Errorf("node n1 gives %s", host)
	}
	if host := naming.NodeWorkerHost(gpuSet("x-"), "n1"); host != "x-n1" {
		t.Errorf("node n1 with a prefix gives %s", host)
	}
}

func gpuSet(hostname string) *slinkyv1beta1.NodeSet {
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	if hostname != "" {
		set.Spec.Template.Spec.Raw = []byte(`{"hostname":"` + hostname + `"}`)
	}
	return set
}
