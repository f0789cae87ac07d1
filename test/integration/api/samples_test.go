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
				out, err := kubectl(t, "apply", "-n", namespace(t), mode, "-f", sample)
				if err != nil || strings.Contains(out, "Warning") {
					t.Errorf("kubectl apply: %v\n%s", err, out)
				}
			})
		}
	}
}

// The fields of our CRDs are too many for kubectl's client-side apply to keep them in an annotation with much room to
// spare, so both ways to install them are tried.
func TestTheCRDsInstallByPlainApply(t *testing.T) {
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
