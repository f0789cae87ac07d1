//go:build integration

package charts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/migrate"
	"github.com/slurm-operator/slurm-operator/internal/migrate/catalog"
)

// A user may bring values of another operator's charts. The chart accepts every value that the catalog calls accepted,
// and the translation of every other one; and both have the effect that the catalog describes.
func TestValuesOfOtherChartsTakeEffect(t *testing.T) {
	// Most values are tried in the same file.
	known := map[string]string{}
	for _, chart := range []migrate.Chart{migrate.Slurm, migrate.Operator} {
		listed, err := catalog.Read(chart)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range listed.Cases() {
			t.Run(string(chart)+"/"+test.Path, func(t *testing.T) {
				manifests := func(given values, translate bool) string {
					t.Helper()
					if translate {
						translated, _, err := migrate.Values(chart, given)
						if err != nil {
							t.Fatal(err)
						}
						given = translated
					}
					key := fmt.Sprint(chart, given)
					if _, found := known[key]; !found {
						rendered, err := render(t.Context(), string(chart), given)
						if err != nil {
							t.Fatal(err)
						}
						known[key] = rendered
					}
					return known[key]
				}
				before := manifests(test.Before, test.Verdict != catalog.Accepted)
				renderings := map[string]string{"translated": manifests(test.After, true)}
				if test.Verdict == catalog.Accepted {
					renderings["as it is"] = manifests(test.After, false)
				}
				for form, after := range renderings {
					if test.Effect != "" && (strings.Contains(before, test.Effect) || !strings.Contains(after, test.Effect)) {
						t.Errorf("%s, it does not add %q", form, test.Effect)
					}
					if test.Without != "" && (!strings.Contains(before, test.Without) || strings.Contains(after, test.Without)) {
						t.Errorf("%s, it does not remove %q", form, test.Without)
					}
				}
			})
		}
	}
}

// Values of a whole cluster and a whole operator, which use most of what the other charts can do.
func TestWholeValuesFilesOfOtherChartsAreAccepted(t *testing.T) {
	prepare(t)
	for _, chart := range []migrate.Chart{migrate.Slurm, migrate.Operator} {
		t.Run(string(chart), func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join("testdata", "other-"+string(chart)+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			translated, notes, err := migrate.Values(chart, parse(t, content))
			if err != nil {
				t.Fatal(err)
			}
			for _, note := range notes {
				t.Log(note)
			}
			manifests, err := render(t.Context(), string(chart), translated)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := apply(t.Context(), manifests); err != nil {
				t.Fatal(err)
			}
		})
	}
}
