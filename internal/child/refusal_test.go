package child_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
)

func TestQuotaRefusalNamesTheRemedy(t *testing.T) {
	for message, remedy := range map[string]string{
		"exceeded quota: compute, requested: requests.cpu=3, limited: requests.cpu=2": "raise that ResourceQuota",
		"failed quota: compute: must specify limits.cpu for: slurmctld":               "set the resources",
		"minimum cpu usage per Container is 100m, but request is 50m":                 "change the LimitRange",
		`User "operator" cannot create resource "pods"`:                               "",
	} {
		err := fmt.Errorf("applying Pod a: %w",
			apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New(message)))
		verdict, refused := child.Refusal(err)
		if refused != (remedy != "") {
			t.Errorf("%s: got verdict %+v", message, verdict)
		}
		if refused &&
			(verdict.Reason != slinkyv1beta1.ReasonQuotaExceeded || !strings.Contains(verdict.Message, message) ||
				!strings.Contains(verdict.Message, remedy)) {
			t.Errorf("%s: got verdict %+v", message, verdict)
		}
	}
}

func TestPodSecurityRefusalNamesTheRemedy(t *testing.T) {
	for message, remedy := range map[string]string{
		`violates PodSecurity "baseline:latest": non-default capabilities (container "slurmd" must not include "BPF" in ` +
			`securityContext.capabilities.add)`: "slurmd needs this to confine jobs",
		`violates PodSecurity "baseline:latest": privileged (container "slurmd" must not set ` +
			`securityContext.privileged=true)`: "slurmd needs this to confine jobs",
		`violates PodSecurity "restricted:latest": hostPath volumes (volume "home")`: "remove from the spec",
	} {
		verdict, refused := child.Refusal(
			apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New(message)))
		if !refused || verdict.Reason != slinkyv1beta1.ReasonPodSecurity || !strings.Contains(verdict.Message, message) ||
			!strings.Contains(verdict.Message, remedy) {
			t.Errorf("%s: got verdict %+v", message, verdict)
		}
	}
}
