//go:build integration

package charts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// The policies of the slurm chart name the ports and labels of the operator's pods, which are in Go.
func TestNetworkPoliciesMatchPodsAndPorts(t *testing.T) {
	manifests, err := render(t.Context(), "slurm", read(t, "slurm", "ci/everything.yaml"),
		"--show-only=templates/networkpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	daemons := map[naming.Daemon][]int{
		naming.Slurmctld: {naming.PortAgent, naming.PortSlurmctld}, naming.Slurmdbd: {naming.PortAgent, naming.PortSlurmdbd},
		naming.Slurmrestd: {naming.PortSlurmrestd}, naming.Login: {naming.PortSSH}, naming.Slurmd: nil,
	}
	ports := map[naming.Daemon][]int{}
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		var policy networkingv1.NetworkPolicy
		if err := yaml.Unmarshal([]byte(document), &policy); err != nil {
			t.Fatal(err)
		}
		for daemon := range daemons {
			if !selects(t, policy.Spec.PodSelector, naming.Labels(daemon, "any")) {
				continue
			}
			found := []int(nil)
			for _, rule := range policy.Spec.Ingress {
				for _, port := range rule.Ports {
					found = append(found, port.Port.IntValue())
				}
			}
			slices.Sort(found)
			ports[daemon] = slices.Compact(found)
			if !admits(t, policy, operatorLabels(t)) && daemon != naming.Slurmd && daemon != naming.Login {
				t.Errorf("the operator cannot reach %s", daemon)
			}
		}
		// Throwaway slurmctlds serve nothing.
		if selects(t, policy.Spec.PodSelector, naming.Labels(naming.Validation, "any")) {
			t.Errorf("%s selects validation pods", policy.Name)
		}
	}
	if diff := cmp.Diff(daemons, ports); diff != "" {
		t.Errorf("ports differ (-want +got):\n%s", diff)
	}
}

// operatorLabels returns the labels of the operator's pods.
func operatorLabels(t *testing.T) labels.Set {
	t.Helper()
	manifest, err := render(t.Context(), "slurm-operator", nil, "--show-only=templates/operator/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.Unmarshal([]byte(manifest), &deployment); err != nil {
		t.Fatal(err)
	}
	return deployment.Spec.Template.Labels
}

// admits reports whether a policy allows pods of other namespaces with labels.
func admits(t *testing.T, policy networkingv1.NetworkPolicy, pod labels.Set) bool {
	t.Helper()
	for _, rule := range policy.Spec.Ingress {
		for _, peer := range rule.From {
			if peer.NamespaceSelector != nil && peer.PodSelector != nil && selects(t, *peer.PodSelector, pod) {
				return true
			}
		}
	}
	return false
}

func selects(t *testing.T, selector metav1.LabelSelector, set labels.Set) bool {
	t.Helper()
	matcher, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		t.Fatal(err)
	}
	return matcher.Matches(set)
}
