package costs_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/test/costs"
)

var update = flag.Bool("update", false, "record the results, and write the page")

const page = "../../docs/reference/change-costs.md"

// I26: every setting of which real Slurm shows that it costs running jobs is held in force, or refused.
func TestCostlyChangesArePrevented(t *testing.T) {
	settings, err := costs.Settings()
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range images.Versions {
		recorded, err := costs.Recorded(version)
		if err != nil {
			t.Fatal(err)
		}
		for _, setting := range settings {
			cost := recorded[setting]
			if cost == "" {
				t.Errorf("%s: %s is not recorded", version, setting)
			}
			if treatment, err := costs.Treatment(setting, cost); err != nil || cost != costs.Nothing && treatment == "" {
				t.Errorf("%s: %s costs %s, and nothing prevents it: %v", version, setting, cost, err)
			}
		}
	}
}

func TestPageShowsTheRecord(t *testing.T) {
	want, err := costs.Page(images.Versions)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(is)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", page, diff)
	}
}
