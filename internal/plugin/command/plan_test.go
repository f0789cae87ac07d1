package command

import (
	"os"
	"path/filepath"
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

// Without the right to read ConfigMaps there is a plan nevertheless, and a note.
func TestPlanWithoutConfigMaps(t *testing.T) {
	server := loaded(t, "config.yaml")
	server.Forbid("configmaps")
	out, err := run(t, server, "plan", "--filename=testdata/changed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NodeSet gpu, as changed", "note: you may not get configmaps"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
}

func TestPlanOfAControllerWhoseChangesDoNotWait(t *testing.T) {
	file := filepath.Join(t.TempDir(), "controller.yaml")
	const controller = "apiVersion: slinky.slurm.net/v1beta1\nkind: Controller\nmetadata: {name: slurm}\n" +
		"spec: {extraConf: SlurmdTimeout=900, configFileRefs: [{name: files}]}\n"
	if err := os.WriteFile(file, []byte(controller), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, loaded(t, "config.yaml"), "plan", "--filename="+file)
	if err != nil || !strings.Contains(out, "Controller slurm: no change waits for jobs") {
		t.Errorf("%v, %s", err, out)
	}
}
