package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/google/licensecheck"
)

// allowed are the licenses that dependencies may have. None of them asks more of users of the product than to keep the
// notices; MPL-2.0 applies to changes of the files that have it.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

// minCoverage is how much of a file must be text of known licenses, in percent. The rest are names of authors.
const minCoverage = 75

var fileName = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([.-](md|txt|apache|bsd|mit|libyaml).*)?$`)

// licensesOfPackage returns the licenses of a package: those of all license files between it and its module's root.
func licensesOfPackage(module, dir string) ([]string, error) {
	files, err := licenseFiles(module, dir)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("there is no license file")
	}
	var licenses []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := licensesOf(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		licenses = append(licenses, found...)
	}
	return licenses, nil
}

// licenseFiles returns the license files in a directory and its parents, up to that of the module.
func licenseFiles(module, dir string) ([]string, error) {
	var files []string
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if entry.Type().IsRegular() && fileName.MatchString(entry.Name()) {
				files = append(files, filepath.Join(dir, entry.Name()))
			}
		}
		parent := filepath.Dir(dir)
		if dir == module || parent == dir {
			return files, nil
		}
		dir = parent
	}
}

// licensesOf returns the licenses in a file, and an error if one of them is unknown or not allowed.
func licensesOf(text []byte) ([]string, error) {
	coverage := licensecheck.Scan(text)
	var found []string
	for _, match := range coverage.Match {
		if !slices.Contains(allowed, match.ID) {
			return nil, fmt.Errorf("%s is not an allowed license: %v", match.ID, allowed)
		}
		if !slices.Contains(found, match.ID) {
			found = append(found, match.ID)
		}
	}
	if coverage.Percent < minCoverage {
		return nil, fmt.Errorf("the license is unknown: only %.0f%% of the text is that of %v", coverage.Percent, found)
	}
	return found, nil
}
