package binaries

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryMinorHasAModule(t *testing.T) {
	modules, err := filepath.Glob(kubernetesPrefix + "*")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(modules, func(a, b string) int { return cmpMinors(b, a) })
	var want []string
	for _, minor := range Minors {
		want = append(want, kubernetesPrefix+minor)
	}
	if diff := cmp.Diff(want, modules); diff != "" {
		t.Errorf("Minors and the directories differ (-Minors +directories):\n%s", diff)
	}
}

// cmpMinors compares the minor versions in the names of two modules: 1.9 is before 1.10.
func cmpMinors(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// A staging module of another patch release would be built without an error.
func TestModulesHaveOneVersionOfKubernetes(t *testing.T) {
	var (
		release = regexp.MustCompile(`\tk8s\.io/kubernetes v1\.(\S+)`)
		staging = regexp.MustCompile(`\tk8s\.io/\S+ => k8s\.io/\S+ v0\.(\S+)`)
	)
	for _, minor := range Minors {
		t.Run(minor, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join(kubernetesPrefix+minor, "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			versions := map[string]bool{}
			for _, pattern := range []*regexp.Regexp{release, staging} {
				found := pattern.FindAllStringSubmatch(string(content), -1)
				if len(found) == 0 {
					t.Errorf("go.mod has nothing that matches %s", pattern)
				}
				for _, match := range found {
					versions["1."+match[1]] = true
				}
			}
			list := slices.Sorted(maps.Keys(versions))
			if len(list) != 1 || !strings.HasPrefix(list[0], minor+".") {
				t.Errorf("go.mod has the versions %s, want one of Kubernetes %s", strings.Join(list, ", "), minor)
			}
		})
	}
}

func TestUnknownMinorIsRefused(t *testing.T) {
	_, err := Group{module: kubernetesPrefix + "1.20"}.Build(t.Context(), io.Discard)
	want := "tests cannot run Kubernetes 1.20; set KUBERNETES to one of " + strings.Join(Minors, ", ")
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
