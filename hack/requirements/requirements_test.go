package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const document = "| id | what | proved by |\n|---|---|---|\n" +
	"| R1 | one thing | `TestOne` |\n" +
	"| R2 | another | `TestTwo/goes well`, `TestOne` |\n"

const sources = `func TestOne(t *testing.T) {} func TestTwo(t *testing.T) { t.Run("goes well", x) }`

func TestMissing(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		want     []string
	}{
		"nothing":            {document, nil},
		"a number":           {strings.Replace(document, "R2", "R3", 1), []string{"R3 stands where R2 is due"}},
		"a test":             {strings.Replace(document, "`TestOne`", "`TestNone`", 1), []string{"R1 names TestNone, which does not exist"}},
		"a subtest":          {strings.Replace(document, "goes well", "fails", 1), []string{"R2 names TestTwo/fails, which does not exist"}},
		"any test":           {strings.Replace(document, "`TestOne` |\n| R2", "none |\n| R2", 1), []string{"R1 names no test"}},
		"all there could be": {"", []string{"there are no rows"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, missing(parse(test.document), sources)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnproved(t *testing.T) {
	for name, test := range map[string]struct{ record, want string }{
		"all passed":                  {`{"Action":"pass","Test":"TestOne"}` + "\n" + `{"Action":"pass","Test":"TestTwo/26.05/goes_well"}`, ""},
		"one test proves two":         {`{"Action":"pass","Test":"TestOne"}`, ""},
		"one failed":                  {`{"Action":"fail","Test":"TestOne"}` + "\n" + `{"Action":"pass","Test":"TestTwo/goes_well"}`, "none of the tests of R1 passed: TestOne"},
		"only the test around passed": {`{"Action":"pass","Test":"TestTwo"}`, "none of the tests of R1 passed: TestOne none of the tests of R2 passed: TestTwo/goes well, TestOne"},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			if err := os.WriteFile(filepath.Join(directory, "unit.json"), []byte(test.record), 0o600); err != nil {
				t.Fatal(err)
			}
			passed, err := passedTests(directory)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, strings.Join(unproved(parse(document), passed), " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := passedTests(t.TempDir()); err == nil {
		t.Error("no records prove something")
	}
}
