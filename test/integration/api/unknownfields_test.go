//go:build integration

package api_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const misspelled = `
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata:
  name: misspelled
spec:
  controllerRef:
    name: slurm
  slurmd:
    resources:
      limit:
        cpu: "1"
  template:
    spec:
      nodeSelectors:
        a: b
`

func TestKubectlReportsUnknownFields(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "misspelled.yaml")
	if err := os.WriteFile(manifest, []byte(misspelled), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args    []string
		refused bool
		says    []string
	}{
		"client-side apply refuses": {
			refused: true,
			says: []string{
				`unknown field "spec.slurmd.resources.limit"`, `unknown field "spec.template.spec.nodeSelectors"`,
			},
		},
		"server-side apply refuses": {
			args:    []string{"--server-side"},
			refused: true,
			says: []string{
				".spec.slurmd.resources.limit: field not declared in schema",
				".spec.template.spec.nodeSelectors: field not declared in schema",
			},
		},
		"apply without strict validation warns": {
			args: []string{"--validate=warn"},
			says: []string{
				`unknown field "spec.slurmd.resources.limit"`, `unknown field "spec.template.spec.nodeSelectors"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := kubectl(t, append([]string{"apply", "-n", namespace(t), "-f", manifest}, test.args...)...)
			if refused := err != nil; refused != test.refused {
				t.Errorf("refused: %v, want %v", refused, test.refused)
			}
			for _, says := range test.says {
				if !strings.Contains(out, says) {
					t.Errorf("kubectl does not say %q:\n%s", says, out)
				}
			}
		})
	}
}

func TestKubectlExplainDescribesFields(t *testing.T) {
	for field, want := range map[string]string{
		"controllers.spec.clusterName":                             "at most 40 letters",
		"controllers.metadata":                                     "Standard object's metadata",
		"nodesets.spec.slurmd.resources.limits":                    "maximum amount of compute resources",
		"nodesets.spec.template.spec.affinity.nodeAffinity":        "node affinity",
		"loginsets.spec.service.spec.type":                         "how the Service is exposed",
		"tokens.status.conditions":                                 "conditions of the token",
		"nodesets.spec.volumeClaimTemplates.spec.storageClassName": "StorageClass",
	} {
		out, err := kubectl(t, "explain", "--api-version=slinky.slurm.net/v1beta1", field)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("kubectl explain %s: %v, %q is missing in:\n%s", field, err, want, out)
		}
	}
}
