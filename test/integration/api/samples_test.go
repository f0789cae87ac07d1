//go:build integration

package api_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestEverySampleApplies(t *testing.T) {
	samples, err := filepath.Glob("../../../config/samples/*.yaml")
	if err != nil || len(samples) == 0 {
		t.Fatalf("finding samples: %v (%d found)", err, len(samples))
	}
	for _, sample := range samples {
		for _, mode := range []string{"--server-side=true", "--server-side=false"} {
			t.Run(filepath.Base(sample)+" "+mode, func(t *testing.T) {
				ns := namespace(t)
				out, err := kubectl(t, "apply", "-n", ns, mode, "-f", sample)
				if err != nil || strings.Contains(out, "Warning") {
					t.Errorf("kubectl apply: %v\n%s", err, out)
				}
				if out, err := kubectl(t, "apply", "-n", ns, mode, "-f", sample); err != nil {
					t.Errorf("kubectl apply, again: %v\n%s", err, out)
				}
				out, err = kubectl(t, "get", "slurm", "-n", ns, "-o", "jsonpath={.items[*].metadata.generation}")
				if err != nil || strings.Trim(out, "1 ") != "" {
					t.Errorf("generations after applying twice: %s, %v; want all 1", out, err)
				}
			})
		}
	}
}

// Without --server-side kubectl stores the whole CRD in an annotation, which is close to its size limit.
func TestCRDsInstallWithPlainApply(t *testing.T) {
	for _, mode := range []string{"--server-side=true", "--server-side=false"} {
		t.Run(mode, func(t *testing.T) {
			out, err := kubectl(t, "apply", mode, "--force-conflicts="+strings.TrimPrefix(mode, "--server-side="),
				"-k", "../../../config/crd")
			if err != nil {
				t.Errorf("kubectl apply: %v\n%s", err, out)
			}
		})
	}
}
