package images

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPackagesWithPendingUpdatesAreListed(t *testing.T) {
	updates := []component{
		{Name: "libc6", Version: "2.41-12+deb13u1"}, {Name: "libc6", Version: "2.41-12+deb13u2"},
		{Name: "openssl", Version: "3.5.1-1+deb13u10"}, {Name: "sudo", Version: "1.9.16p2-3+deb13u1"},
	}
	for name, test := range map[string]struct {
		installed []component
		want      []string
	}{
		"an older package is listed with each update": {
			[]component{{Name: "libc6", Version: "2.41-12"}},
			[]string{
				"libc6 2.41-12, update 2.41-12+deb13u1", "libc6 2.41-12, update 2.41-12+deb13u2",
			},
		},
		"versions are compared as Debian does": {
			[]component{{Name: "openssl", Version: "3.5.1-1+deb13u9"}},
			[]string{"openssl 3.5.1-1+deb13u9, update 3.5.1-1+deb13u10"},
		},
		"an updated package is not listed": {[]component{{Name: "libc6", Version: "2.41-12+deb13u2"}}, nil},
		"a newer package of another suite is not listed": {
			[]component{{Name: "openssl", Version: "3.6.0-1"}}, nil,
		},
		"a package without updates is not listed": {[]component{{Name: "slurmctld", Version: "1"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := pending(test.installed, updates,
				func(a, b string) (bool, error) { return isOlder(t.Context(), a, b) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
