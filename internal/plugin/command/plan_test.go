package command

import (
	"strings"
	"testing"
)

func TestPlanOfAChangedNodeSet(t *testing.T) {
	server := loaded(t, "config.yaml")
	out, err := run(t, server, "plan", "--filename=testdata/changed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"NodeSet gpu, as changed: 8 desired", "create gpu-[0-7]: it is missing", "Slurm was not asked",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
}

func TestPlanNeedsPods(t *testing.T) {
	server := loaded(t, "config.yaml")
	server.Forbid("pods")
	if _, err := run(t, server, "plan"); err == nil || !strings.Contains(err.Error(), "you may not list pods") {
		t.Error(err)
	}
}
