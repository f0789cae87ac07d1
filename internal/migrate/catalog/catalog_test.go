package catalog_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/migrate"
	"github.com/slurm-operator/slurm-operator/internal/migrate/catalog"
)

var update = flag.Bool("update", false, "rewrite the tables in docs/reference/values.md")

func read(t *testing.T, chart migrate.Chart) catalog.Catalog {
	t.Helper()
	found, err := catalog.Read(chart)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func at(given map[string]any, path string) any {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		given, _ = given[name].(map[string]any)
	}
	return given[names[len(names)-1]]
}

// An accepted value stays where it is, and all others leave with a note.
func TestVerdictsAreThoseOfTheTranslation(t *testing.T) {
	for _, chart := range []migrate.Chart{migrate.Slurm, migrate.Operator} {
		for _, test := range read(t, chart).Cases() {
			t.Run(string(chart)+"/"+test.Path, func(t *testing.T) {
				translated, notes, err := migrate.Values(chart, test.After)
				if err != nil {
					t.Fatal(err)
				}
				stays := reflect.DeepEqual(at(translated, test.Path), test.Value.Value)
				if stays != (test.Verdict == catalog.Accepted) {
					t.Errorf("%s, but the translation is %v", test.Verdict, translated)
				}
				noted := map[string]bool{}
				for _, note := range notes {
					noted[note.Path] = true
				}
				if !stays && !notedAbove(noted, test.Path) {
					t.Errorf("no note about it in %v", notes)
				}
				again, more, err := migrate.Values(chart, translated)
				if diff := cmp.Diff(translated, again); diff != "" || len(more) > 0 || err != nil {
					t.Errorf("translated values change when they are translated again: %s %v %v", diff, more, err)
				}
			})
		}
	}
}

// notedAbove reports whether there is a note about a path, or about a mapping that contains it.
func notedAbove(noted map[string]bool, path string) bool {
	for path != "" && !noted[path] {
		path = path[:max(strings.LastIndex(path, "."), 0)]
	}
	return path != ""
}

func TestEveryPathIsListedOnce(t *testing.T) {
	for _, chart := range []migrate.Chart{migrate.Slurm, migrate.Operator} {
		seen := map[string]bool{}
		for _, test := range read(t, chart).Cases() {
			if seen[test.Path] {
				t.Errorf("%s of %s is listed twice", test.Path, chart)
			}
			seen[test.Path] = true
			effects := 0
			for _, text := range []string{test.Effect, test.Without} {
				if text != "" {
					effects++
				}
			}
			if (effects == 1) == (test.Verdict == catalog.Dropped) {
				t.Errorf("%s is %s, and has %d effects", test.Path, test.Verdict, effects)
			}
		}
	}
}

// The tables in the reference are those of the catalog.
func TestReferenceIsUpToDate(t *testing.T) {
	const page = "../../../docs/reference/values.md"
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for _, chart := range []migrate.Chart{migrate.Slurm, migrate.Operator} {
		begin, end := fmt.Sprintf("<!-- %s -->\n", chart), fmt.Sprintf("<!-- end of %s -->", chart)
		before, rest, _ := strings.Cut(text, begin)
		_, after, found := strings.Cut(rest, end)
		if !found {
			t.Fatalf("%s has no table of %s", page, chart)
		}
		text = before + begin + table(read(t, chart)) + end + after
	}
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil { //nolint:gosec // documentation is public
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(text, string(content)); diff != "" {
		t.Errorf("%s differs (-catalog +page); run the test with -update:\n%s", page, diff)
	}
}

func table(values catalog.Catalog) string {
	var rows strings.Builder
	rows.WriteString("| value | verdict | |\n|---|---|---|\n")
	for _, value := range values.Values {
		path := "`" + value.Path + "`"
		if len(value.Of) > 0 {
			path += " of `" + strings.Join(value.Of, "`, `") + "`"
		}
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", path, value.Verdict, value.About)
	}
	return rows.String()
}
