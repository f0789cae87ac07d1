package v1beta1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

func TestFragmentRoundTripsUnchanged(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"absent stays absent": {in: `{}`, want: `{}`},
		"null is absent":      {in: `{"spec":null}`, want: `{}`},
		"empty is not absent": {in: `{"spec":{}}`, want: `{"spec":{}}`},
		"false and zero are not absent": {
			in: `{"spec":{"hostNetwork":false,"priority":0}}`, want: `{"spec":{"hostNetwork":false,"priority":0}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var template slinkyv1beta1.PodTemplate
			if err := json.Unmarshal([]byte(test.in), &template); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(template.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFragmentMustBeAnObject(t *testing.T) {
	for _, in := range []string{`"image"`, `[]`, `1`, `true`} {
		var fragment slinkyv1beta1.ContainerFragment
		if err := json.Unmarshal([]byte(in), &fragment); err == nil {
			t.Errorf("%s was accepted as a fragment", in)
		}
	}
}

func TestFragmentDoesNotShareTheDecodersBuffer(t *testing.T) {
	buffer := []byte(`{"image":"a"}`)
	var fragment slinkyv1beta1.ContainerFragment
	if err := fragment.UnmarshalJSON(buffer); err != nil {
		t.Fatal(err)
	}
	clear(buffer)
	if got, want := string(fragment.Raw), `{"image":"a"}`; got != want {
		t.Errorf("the fragment is %q after its buffer was reused, want %q", got, want)
	}
}

func TestJWTKeyIsFoundUnderEitherName(t *testing.T) {
	older := &slinkyv1beta1.SecretKeyReference{Name: "older"}
	newer := &slinkyv1beta1.SecretKeyReference{Name: "newer"}
	for name, test := range map[string]struct {
		newer, older, want *slinkyv1beta1.SecretKeyReference
	}{
		"neither":           {},
		"the older name":    {older: older, want: older},
		"the newer name":    {newer: newer, want: newer},
		"the newer of both": {newer: newer, older: older, want: newer},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, got := range map[string]*slinkyv1beta1.SecretKeyReference{
				"Controller": (&slinkyv1beta1.ControllerSpec{JWTKeyRef: test.newer, JWTHS256KeyRef: test.older}).
					JWTKey(),
				"Accounting": (&slinkyv1beta1.AccountingSpec{JWTKeyRef: test.newer, JWTHS256KeyRef: test.older}).
					JWTKey(),
				"Token": (&slinkyv1beta1.TokenSpec{JWTKeyRef: test.newer, JWTHS256KeyRef: test.older}).JWTKey(),
			} {
				if got != test.want {
					t.Errorf("%s: JWTKey() = %v, want %v", kind, got, test.want)
				}
			}
		})
	}
}
