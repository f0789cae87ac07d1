package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A result is the outcome of a test in a run.
type result struct {
	name   []string // the function, then its subtests
	passed bool
}

// readRecords reads the results of all tests that are recorded in a directory. A skipped test counts as not run.
func readRecords(directory string) ([]result, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, fmt.Errorf("there are no records in %s", directory))
	}
	var results []result
	for _, file := range files {
		found, err := readRecord(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		results = append(results, found...)
	}
	return results, nil
}

func readRecord(path string) ([]result, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var results []result
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		var event struct{ Action, Test string }
		if json.Unmarshal(line, &event) == nil && event.Test != "" &&
			(event.Action == "pass" || event.Action == "fail") {
			results = append(results, result{name: strings.Split(event.Test, "/"), passed: event.Action == "pass"})
		}
		if err != nil {
			return results, nil
		}
	}
}

// unproved lists the tests of all rows that failed, and those that did not run although they are not marked as full.
func unproved(rows []row, results []result) []string {
	var faults []string
	for _, row := range rows {
		for _, test := range row.tests {
			name := strings.Split(strings.ReplaceAll(test.name, " ", "_"), "/")
			ran, failed := false, false
			for _, result := range results {
				if matches(name, result.name) {
					ran = true
					failed = failed || !result.passed
				}
			}
			switch {
			case failed:
				faults = append(faults, fmt.Sprintf("%s: %s failed", row.id, test.name))
			case !ran && !test.full:
				faults = append(faults,
					fmt.Sprintf("%s: %s did not run; if only the full suite runs it, mark it (full)", row.id,
						test.name))
			}
		}
	}
	return faults
}

// matches reports whether a test that ran is the named one: the same function, and all named subtests in order. The
// test that ran may have more parts in between, such as the Slurm version, but its last part must be the last one
// named, so that a subtest does not prove its parent.
func matches(name, ran []string) bool {
	if name[0] != ran[0] || name[len(name)-1] != ran[len(ran)-1] {
		return false
	}
	wanted := name[1:]
	for _, part := range ran[1:] {
		if len(wanted) > 0 && wanted[0] == part {
			wanted = wanted[1:]
		}
	}
	return len(wanted) == 0 && (len(name) > 1 || len(ran) == 1)
}
