package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWorkersByKind(t *testing.T) {
	options, err := controllerOptions(Options{Workers: 4, WorkersByKind: map[string]int{"NodeSet": 16}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"NodeSet.slinky.slurm.net": 16}, options.GroupKindConcurrency); diff != "" ||
		options.MaxConcurrentReconciles != 4 {
		t.Errorf("%d workers, and by kind (-want +got):\n%s", options.MaxConcurrentReconciles, diff)
	}
	for name, workers := range map[string]map[string]int{
		"unknown kind": {"nodeset": 16},
		"no workers":   {"NodeSet": 0},
	} {
		if _, err := controllerOptions(Options{WorkersByKind: workers}); err == nil ||
			!strings.Contains(err.Error(), "the resource types are Accounting, ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
