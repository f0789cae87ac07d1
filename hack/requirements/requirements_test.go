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
	"| R2 | another | `TestTwo/scales out`, `TestOne`, `TestLong` (full) |\n"

const sources = `func TestOne(t *testing.T) {} func TestLong(t *testing.T) {} func TestTwo(t *testing.T) { t.Run("scales out", x) }`

func TestMissingTests(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		want     []string
	}{
		"nothing":                    {document, nil},
		"nothing of security claims": {strings.ReplaceAll(document, "| R", "| S"), nil},
		"a number":                   {strings.Replace(document, "R2", "R3", 1), []string{"R3 is where R2 is expected"}},
		"a test": {
			strings.Replace(document, "`TestOne`", "`TestNone`", 1),
			[]string{"R1 names TestNone, which does not exist"},
		},
		"a subtest": {
			strings.Replace(document, "scales out", "fails", 1),
			[]string{"R2 names TestTwo/fails, which does not exist"},
		},
		"a test of the full suite": {
			strings.Replace(document, "`TestLong`", "`TestNone`", 1), []string{
				"R2 names TestNone, which does not exist",
			},
		},
		"any test": {
			strings.Replace(document, "`TestOne` |\n| R2", "none |\n| R2", 1), []string{"R1 names no test"},
		},
		"a test that runs": {
			strings.Replace(document, "`TestOne` |", "`TestOne` (full) |", 1),
			[]string{"R1 names only tests of the full suite"},
		},
		"all rows":                {"", []string{"there are no rows"}},
		"a row that says not yet": {strings.Replace(document, "`TestOne` |\n| R2", "not yet |\n| R2", 1), nil},
		"nothing of a longer document": {
			document +
				"\n## More\n\n| | what | tests |\n|---|---|---|\n| R3 | a third thing | `TestLong` (full), " +
				"`TestTwo/scales out` |\n", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, missing(parse(test.document), sources)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnprovenRequirements(t *testing.T) {
	pass := func(test string) string { return `{"Action":"pass","Test":"` + test + `"}` }
	fail := func(test string) string { return `{"Action":"fail","Test":"` + test + `"}` }
	for name, test := range map[string]struct {
		record []string
		want   []string
	}{
		"all passed": {[]string{pass("TestOne"), pass("TestTwo/26.05/scales_out")}, nil},
		"all passed, with the full suite": {
			[]string{pass("TestOne"), pass("TestTwo/scales_out"), pass("TestLong")}, nil,
		},
		"one of two did not run": {
			[]string{pass("TestOne")}, []string{
				"R2: TestTwo/scales out did not run; if only the full suite runs it, mark it (full)",
			},
		},
		"one failed": {
			[]string{fail("TestOne"), pass("TestTwo/scales_out")}, []string{"R1: TestOne failed", "R2: TestOne failed"},
		},
		"one failed on one of two versions": {
			[]string{pass("TestOne"), pass("TestTwo/26.05/scales_out"), fail("TestTwo/24.11/scales_out")}, []string{
				"R2: TestTwo/scales out failed",
			},
		},
		"a test of the full suite failed": {
			[]string{pass("TestOne"), pass("TestTwo/scales_out"), fail("TestLong")}, []string{"R2: TestLong failed"},
		},
		"only a subtest of the test passed": {
			[]string{pass("TestOne/part"), pass("TestTwo/scales_out")},
			[]string{
				"R1: TestOne did not run; if only the full suite runs it, mark it (full)",
				"R2: TestOne did not run; if only the full suite runs it, mark it (full)",
			},
		},
		"only the test around it passed": {
			[]string{pass("TestOne"), pass("TestTwo")}, []string{
				"R2: TestTwo/scales out did not run; if only the full suite runs it, mark it (full)",
			},
		},
		"a subtest of another function passed": {
			[]string{pass("TestOne"), pass("TestOther/TestTwo/scales_out")},
			[]string{"R2: TestTwo/scales out did not run; if only the full suite runs it, mark it (full)"},
		},
		"a part of the subtest passed": {
			[]string{pass("TestOne"), pass("TestTwo/scales_out/26.05")},
			[]string{"R2: TestTwo/scales out did not run; if only the full suite runs it, mark it (full)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			if err := os.WriteFile(filepath.Join(directory, "unit.json"), []byte(strings.Join(test.record, "\n")),
				0o600); err != nil {
				t.Fatal(err)
			}
			results, err := readRecords(directory)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, unproved(parse(document), results)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := readRecords(t.TempDir()); err == nil {
		t.Error("an empty directory is accepted as records")
	}
}

func TestMatches(t *testing.T) {
	for _, test := range []struct {
		name, ran string
		want      bool
	}{
		{"TestA", "TestA", true},
		{"TestA", "TestA/b", false},
		{"TestA/b", "TestA", false},
		{"TestA/b", "TestA/26.05/b", true},
		{"TestA/b", "TestB/TestA/b", false},
		{"TestA/b/c", "TestA/b/c", true},
		{"TestA/b/c", "TestA/c/b", false},
		{"TestA/b/c", "TestA/c/b/c", true},
		{"TestA/b/b", "TestA/b", false},
	} {
		if got := matches(strings.Split(test.name, "/"), strings.Split(test.ran, "/")); got != test.want {
			t.Errorf("%s named, %s ran: %t", test.name, test.ran, got)
		}
	}
}
