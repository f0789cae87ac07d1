// Command requirements checks that every requirement, or every invariant, has a test that proves it.
//
//	requirements docs/requirements.md             every row names a test, and every named test exists
//	requirements docs/requirements.md bin/tests   and each row has a named test that passed in the runs recorded there
//
// The records are what go test -json prints.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	if len(arguments) == 2 {
		passed, err := passedTests(arguments[1])
		if err != nil {
			return err
		}
		faults = append(faults, unproved(rows, passed)...)
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	fmt.Printf("%s: %d rows, each with a test that proves it\n", arguments[0], len(rows))
	return nil
}

// A row is a requirement and the tests that prove it.
type row struct {
	id    string
	tests []string
}

var (
	rowLine  = regexp.MustCompile(`^\| *([RI]\d+) *\|`)
	testName = regexp.MustCompile("`(Test[^`]+)`")
)

// parse reads the rows of a document: lines of a table that begin with the number of a requirement or an invariant and name tests in
// backticks.
func parse(document string) []row {
	var rows []row
	for line := range strings.Lines(document) {
		match := rowLine.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		row := row{id: match[1]}
		for _, name := range testName.FindAllStringSubmatch(line, -1) {
			row.tests = append(row.tests, name[1])
		}
		rows = append(rows, row)
	}
	return rows
}

// testSources is the text of all files with tests below a directory.
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

// missing tells which numbers are left out, and which tests are named that no source has.
func missing(rows []row, sources string) []string {
	var faults []string
	for i, row := range rows {
		if want := fmt.Sprintf("%c%d", rows[0].id[0], i+1); row.id != want {
			faults = append(faults, fmt.Sprintf("%s stands where %s is due", row.id, want))
		}
		if len(row.tests) == 0 {
			faults = append(faults, row.id+" names no test")
		}
		for _, test := range row.tests {
			function, subtests, _ := strings.Cut(test, "/")
			exists := strings.Contains(sources, "func "+function+"(")
			for subtest := range strings.SplitSeq(subtests, "/") {
				exists = exists && (subtest == "" || strings.Contains(sources, `"`+subtest+`"`))
			}
			if !exists {
				faults = append(faults, fmt.Sprintf("%s names %s, which does not exist", row.id, test))
			}
		}
	}
	if len(rows) == 0 {
		faults = append(faults, "there are no rows")
	}
	return faults
}

// passedTests reads which tests have passed, as lists of the parts of their names.
func passedTests(directory string) ([][]string, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, fmt.Errorf("there are no records in %s", directory))
	}
	var passed [][]string
	for _, file := range files {
		tests, err := readRecord(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		passed = append(passed, tests...)
	}
	return passed, nil
}

func readRecord(path string) ([][]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var passed [][]string
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		var event struct{ Action, Test string }
		if json.Unmarshal(line, &event) == nil && event.Action == "pass" && event.Test != "" {
			passed = append(passed, strings.Split(event.Test, "/"))
		}
		if err != nil {
			return passed, nil
		}
	}
}

// unproved tells which rows have no test that passed.
func unproved(rows []row, passed [][]string) []string {
	var faults []string
	for _, row := range rows {
		proved := slices.ContainsFunc(row.tests, func(test string) bool {
			parts := strings.Split(strings.ReplaceAll(test, " ", "_"), "/")
			return slices.ContainsFunc(passed, func(ran []string) bool { return within(parts, ran) })
		})
		if !proved {
			faults = append(faults, fmt.Sprintf("none of the tests of %s passed: %s", row.id, strings.Join(row.tests, ", ")))
		}
	}
	return faults
}

// within tells whether parts are among others, in the same order: tests of several versions of Slurm have one more part.
func within(parts, others []string) bool {
	for _, other := range others {
		if len(parts) > 0 && parts[0] == other {
			parts = parts[1:]
		}
	}
	return len(parts) == 0
}
