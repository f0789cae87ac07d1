package command

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/test/golden"
)

func TestTop(t *testing.T) {
	for name, arguments := range map[string][]string{
		"top.txt":             {"top"},
		"top-nodes.txt":       {"top", "nodes"},
		"top-nodes-wide.txt":  {"top", "nodes", "--sort-by=load", "--output=wide", "--limit=3"},
		"top-users.txt":       {"top", "users", "--sort-by=pending"},
		"top-users-first.txt": {"top", "users", "--limit=1"},
		"top-gpus.txt":        {"top", "gpus"},
		"top-nodes.json":      {"top", "nodes", "--output=json", "--sort-by=name", "--limit=1"},
		"top-users.yaml":      {"top", "users", "--output=yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, loaded(t, "cluster.yaml", "pods.yaml", "metrics.yaml"), arguments...)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name, out)
		})
	}
}

func TestTopSaysWhatIsNotCounted(t *testing.T) {
	answers := scripted(t)
	slurm := func(ctx context.Context, command ...string) ([]byte, error) {
		printed, err := answers(ctx, command...)
		if slices.Contains(command, "SLURM_BITSTR_LEN=0") {
			printed = []byte(strings.ReplaceAll(string(printed), ",gres/gpu=", ",gres/other="))
		}
		return printed, err
	}
	out, err := runWith(t, loaded(t, "cluster.yaml", "pods.yaml"), slurm, "top", "users")
	if err != nil || !strings.Contains(out, "AccountingStorageTRES=gres/gpu") || !strings.Contains(out, "bob") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTopExplainsFailures(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"an unknown view":            {[]string{"top", "disks"}, `invalid argument "disks"`},
		"an order of another view":   {[]string{"top", "users", "--sort-by=load"}, "use --sort-by=cpu, gpu, memory, name"},
		"an order that has no sense": {[]string{"top", "gpus", "--sort-by=cpu"}, "use --sort-by=gpu, name"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := run(t, loaded(t, "cluster.yaml"), test.arguments...); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	_, err := runWith(t, loaded(t, "cluster.yaml"), noExec, "top")
	if err == nil || !strings.Contains(err.Error(), "you may not create pods/exec") {
		t.Errorf("without the right to exec: %v", err)
	}
}
