package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/test/golden"
)

func TestConfig(t *testing.T) {
	for name, arguments := range map[string][]string{
		"config.txt":       {"config"},
		"config-file.txt":  {"config", "--file=topology.yaml"},
		"config-diff.txt":  {"config", "diff"},
		"config-check.txt": {"config", "check", "--filename=testdata/changed.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, loaded(t, "config.yaml"), arguments...)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name, out)
		})
	}
}

// A change that waits because of running jobs is named before it is made, with the jobs that it waits for.
func TestCostlyChangesAreNamedBeforehand(t *testing.T) {
	for name, command := range map[string]string{"config-check-costly.txt": "config check", "plan-costly.txt": "plan"} {
		t.Run(name, func(t *testing.T) {
			server := loaded(t, "config.yaml", "slurmctld.yaml")
			out, err := run(t, server, append(strings.Fields(command), "--filename=testdata/costly.yaml")...)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name, out)
		})
	}
}

// Without an answer of Slurm, the keys are named nevertheless.
func TestCostlyChangesAreNamedWithoutSlurm(t *testing.T) {
	out, err := run(t, loaded(t, "config.yaml"), "config", "check", "--filename=testdata/costly.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SelectType stays", "how many jobs run is not known", "note: jobs were not counted: "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
}

func TestConfigCheckFailsForAMistake(t *testing.T) {
	out, err := run(t, loaded(t, "config.yaml"), "config", "check", "--filename=testdata/mistake.yaml")
	if code, is := errors.AsType[ExitCode](err); !is || code != 1 {
		t.Errorf("%v, want the exit code 1", err)
	}
	if !strings.Contains(out, "line 1: SlurmdPort: the operator sets this key") {
		t.Error(out)
	}
}

func TestConfigChangesNothing(t *testing.T) {
	server := loaded(t, "config.yaml")
	if _, err := run(t, server, "config", "check", "--filename=testdata/changed.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, request := range server.Requests() {
		if !strings.HasPrefix(request, "GET ") && !strings.HasPrefix(request, "PATCH ") {
			t.Errorf("%s", request)
		}
	}
}

func TestConfigNamesMissingRights(t *testing.T) {
	server := loaded(t, "config.yaml")
	server.Forbid("configmaps")
	if _, err := run(t, server, "config"); err == nil || !strings.Contains(err.Error(), "you may not get configmaps") {
		t.Error(err)
	}
}
