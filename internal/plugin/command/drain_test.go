package command

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

// recorder answers as scripted does, and records the changes.
func recorder(t *testing.T) (slurm slurmcli.Runner, changes *[]string) {
	t.Helper()
	changes = new([]string)
	answers := scripted(t)
	return func(ctx context.Context, command ...string) ([]byte, error) {
		if slices.Contains(command, "update") {
			*changes = append(*changes, strings.Join(command, " "))
			return nil, nil
		}
		return answers(ctx, command...)
	}, changes
}

func TestDrain(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		changes   []string
		code      int
	}{
		"drain.txt": {
			[]string{"drain", "gpu-[0-1,3,10]", "--reason= broken  fan"},
			[]string{"scontrol update nodename=gpu-[0-1,3] state=drain reason=broken fan (alice@example.org)"}, 0,
		},
		"drain-dry-run.txt": {[]string{"drain", "gpu-0", "--reason=broken fan", "--dry-run"}, nil, 0},
		"undrain.txt": {
			[]string{"undrain", "gpu-[1-4,10]"}, []string{"scontrol update nodename=gpu-4,gpu-10 state=resume"}, 1,
		},
		"undrain.json": {[]string{"undrain", "gpu-2", "--output=json"}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			slurm, changes := recorder(t)
			out, err := runWith(t, loaded(t, "cluster.yaml", "pods.yaml"), slurm, test.arguments...)
			if code, _ := errors.AsType[ExitCode](err); int(code) != test.code || err != nil && test.code == 0 {
				t.Errorf("exit code %d: %v", code, err)
			}
			if diff := cmp.Diff(test.changes, *changes); diff != "" {
				t.Error(diff)
			}
			golden.Compare(t, name, out)
		})
	}
}

func TestDrainChangesNothingInDoubt(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"without a reason":              {[]string{"drain", "gpu-0"}, "--reason="},
		"with a reason of the operator": {[]string{"drain", "gpu-0", "--reason=slurm-operator: x"}, "are the operator's"},
		"an unknown node":               {[]string{"drain", "gpu-[0,77]", "--reason=x"}, "no node gpu-77 in Slurm; nothing"},
		"a node that is not registered": {[]string{"undrain", "gpu-11"}, "no node gpu-11 in Slurm"},
	} {
		t.Run(name, func(t *testing.T) {
			slurm, changes := recorder(t)
			_, err := runWith(t, loaded(t, "cluster.yaml", "pods.yaml"), slurm, test.arguments...)
			if err == nil || !strings.Contains(err.Error(), test.want) || len(*changes) > 0 {
				t.Errorf("%v, want %q; changes %q", err, test.want, *changes)
			}
		})
	}
	_, err := runWith(t, loaded(t, "cluster.yaml", "pods.yaml"), noExec, "drain", "gpu-0", "--reason=x")
	if err == nil || !strings.Contains(err.Error(), "pods/exec") {
		t.Errorf("without the right to exec: %v", err)
	}
}
