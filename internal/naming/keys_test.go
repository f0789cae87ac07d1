package naming_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

func TestJWTKeyIsFoundUnderDocumentedNames(t *testing.T) {
	type key = slinkyv1beta1.SecretKeyReference
	former := key{Name: "slurm-auth-jwt", Key: "jwt_hs256.key"}
	documented := key{Name: "slurm-auth-jwths256", Key: "jwt_hs256.key"}
	other := key{Name: "slurm-auth-jwt", Key: "jwt.key"}
	mine := key{Name: "mine", Key: "key"}
	for name, test := range map[string]struct {
		given *key
		at    key
		names []key
	}{
		"without a reference, that of a running cluster first": {nil, documented, []key{former, documented, other}},
		"with a documented name, that one first":               {&other, other, []key{other, former, documented}},
		"with another name, only that one":                     {&mine, mine, []key{mine}},
	} {
		t.Run(name, func(t *testing.T) {
			controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}}
			controller.Spec.JWTKeyRef = test.given
			keys := naming.ControllerKeys(controller, nil)
			if diff := cmp.Diff(test.names, keys.JWTNames); keys.JWT != test.at || diff != "" {
				t.Errorf("the key belongs at %v, and its names differ (-want +got):\n%s", keys.JWT, diff)
			}
		})
	}
}
