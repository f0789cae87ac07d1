// Command requirements checks that every requirement, invariant, or security claim has tests that prove it.
//
//	requirements docs/requirements.md             every row names tests, and every named test exists
//	requirements docs/requirements.md bin/tests   and every named test passed in the runs that are recorded there
//
// A test that only the full suite runs is marked in the document: `TestChaos` (full). It may be missing from the
// records, but it must not have failed, and a row needs at least one test that is not marked. The records are the
// output of go test -json.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "requirements:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 || len(arguments) > 2 {
		return errors.New("usage: requirements DOCUMENT [DIRECTORY OF RECORDS]")
	}
	document, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	rows := parse(string(document))
	sources, err := testSources(".")
	if err != nil {
		return err
	}
	faults := missing(rows, sources)
	proof := "each with tests that exist"
	if len(arguments) == 2 {
		results, err := readRecords(arguments[1])
		if err != nil {
			return err
		}
		faults = append(faults, unproved(rows, results)...)
		proof = "each proved by the tests that it names"
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	fmt.Printf("%s: %d rows, %s; not proved yet: %v\n", arguments[0], len(rows), proof, pending(rows))
	return nil
}

// A row is a requirement and the tests that prove it.
type row struct {
	id    string
	tests []namedTest
	// pending is set if the document says "not yet".
	pending bool
}

// A namedTest is a test that a row names.
type namedTest struct {
	name string
	// full is set if only the full suite runs it.
	full bool
}

var (
	rowLine  = regexp.MustCompile(`^\| *([RIS]\d+) *\|`)
	testName = regexp.MustCompile("`(Test[^`]+)`( \\(full\\))?")
)

// parse reads the rows of a document: lines of a table that start with the number of a requirement, an invariant or a
// security claim, and name tests in backticks. A document may have several tables with consecutive numbers.
func parse(document string) []row {
	var rows []row
	for line := range strings.Lines(document) {
		match := rowLine.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		row := row{id: match[1], pending: strings.HasSuffix(strings.TrimSpace(line), "| not yet |")}
		for _, name := range testName.FindAllStringSubmatch(line, -1) {
			row.tests = append(row.tests, namedTest{name: name[1], full: name[2] != ""})
		}
		rows = append(rows, row)
	}
	return rows
}

// pending returns the rows that the document marks as not yet proved.
func pending(rows []row) []string {
	ids := []string{}
	for _, row := range rows {
		if row.pending {
			ids = append(ids, row.id)
		}
	}
	return ids
}

// testSources returns the text of all test files below a directory.
func testSources(root string) (string, error) {
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	return all.String(), err
}

// missing lists missing numbers, rows without a test outside the full suite, and tests that do not exist.
func missing(rows []row, sources string) []string {
	var faults []string
	for i, row := range rows {
		if want := fmt.Sprintf("%c%d", rows[0].id[0], i+1); row.id != want {
			faults = append(faults, fmt.Sprintf("%s is where %s is expected", row.id, want))
		}
		always := 0
		for _, test := range row.tests {
			if !test.full {
				always++
			}
			if !exists(test.name, sources) {
				faults = append(faults, fmt.Sprintf("%s names %s, which does not exist", row.id, test.name))
			}
		}
		switch {
		case row.pending && len(row.tests) == 0:
		case len(row.tests) == 0:
			faults = append(faults, row.id+" names no test")
		case always == 0:
			faults = append(faults, row.id+" names only tests of the full suite")
		}
	}
	if len(rows) == 0 {
		faults = append(faults, "there are no rows")
	}
	return faults
}

// exists reports whether the sources contain a test function and, as strings, the names of its subtests.
func exists(test, sources string) bool {
	function, subtests, _ := strings.Cut(test, "/")
	if !strings.Contains(sources, "func "+function+"(") {
		return false
	}
	for subtest := range strings.SplitSeq(subtests, "/") {
		if subtest != "" && !strings.Contains(sources, `"`+subtest+`"`) {
			return false
		}
	}
	return true
}
