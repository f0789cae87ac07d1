package command

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/plugin/doctor"
)

func TestDoctor(t *testing.T) {
	server := loaded(t, "cluster.yaml")
	server.Forbid("leases", "storageclasses")
	out, err := run(t, server, "doctor", "slurm", "--output=json")
	if code, ok := errors.AsType[ExitCode](err); !ok || code != 2 {
		t.Fatalf("%v, want the exit code 2", err)
	}
	var result doctor.Result
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatal(err)
	}
	var checks []string
	for _, finding := range result.Findings {
		checks = append(checks, finding.Check+" "+finding.Object)
	}
	for _, want := range []string{
		"PodsFailing NodeSet/debug", "TopologyRefused NodeSet/gpu", "Expired Token/audit",
		"OperatorMissing Deployment/slurm-operator", "MissingCRD CustomResourceDefinition/nodesets.slinky.slurm.net",
	} {
		if !slices.Contains(checks, want) {
			t.Errorf("%q is not among the findings %q", want, checks)
		}
	}
	if notes := strings.Join(result.Notes, "\n"); !strings.Contains(notes, "you may not list storageclasses") {
		t.Errorf("the missing right is not named: %s", notes)
	}
}

func TestDoctorOfAnUnknownCluster(t *testing.T) {
	_, err := run(t, loaded(t, "cluster.yaml"), "doctor", "slrum")
	if err == nil || !strings.Contains(err.Error(), "there is no Controller slrum") {
		t.Error(err)
	}
}
