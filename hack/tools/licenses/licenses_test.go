package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mit = `Copyright (c) 2020 Alice

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`

const gpl = `This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public
License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later
version.
`

func TestLicensesOfAFile(t *testing.T) {
	for name, test := range map[string]struct {
		text, fault string
		want        []string
	}{
		"allowed":                        {mit, "", []string{"MIT"}},
		"not allowed":                    {gpl, "GPL-3.0-or-later", nil},
		"one allowed, one not":           {mit + "\n" + gpl, "GPL-3.0-or-later", nil},
		"unknown":                        {"All rights reserved. " + strings.Repeat("Ask first. ", 40), "unknown", nil},
		"known with a long unknown part": {mit + strings.Repeat("But not on Mondays. ", 200), "unknown", nil},
		"empty":                          {"", "unknown", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := licensesOf([]byte(test.text))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
				t.Errorf("the error is %v, want %q", err, test.fault)
			}
		})
	}
}

// A package may have another license than its module.
func TestLicenseFilesOfAPackage(t *testing.T) {
	module := t.TempDir()
	for _, file := range []string{
		"LICENSE", "license.go", "licenses/list.txt", "third_party/COPYING", "third_party/a/a.go", "other/LICENSE.md",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(module, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(module, file), []byte(mit), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string][]string{
		".": {"LICENSE"}, "third_party/a": {"third_party/COPYING", "LICENSE"}, "other": {"other/LICENSE.md", "LICENSE"},
	} {
		found, err := licenseFiles(module, filepath.Join(module, dir))
		if err != nil {
			t.Fatal(err)
		}
		for i := range found {
			found[i], _ = filepath.Rel(module, found[i])
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("%s: %s", dir, diff)
		}
	}
}
