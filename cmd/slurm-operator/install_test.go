package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestInstallReplacesAnOlderCopy(t *testing.T) {
	dir := t.TempDir()
	source, target := filepath.Join(dir, "program"), filepath.Join(dir, "bin", "installed")
	if err := os.Mkdir(filepath.Dir(target), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"older", "newer"} {
		if err := os.WriteFile(source, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := install(source, target); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(target)
	if err != nil || string(content) != "newer" {
		t.Errorf("installed %q, %v", content, err)
	}
	info, err := os.Stat(target)
	if err != nil || info.Mode() != 0o555 {
		t.Errorf("mode %v, %v; want -r-xr-xr-x", info.Mode(), err)
	}
	if entries, err := os.ReadDir(filepath.Dir(target)); err != nil || len(entries) != 1 {
		t.Errorf("%v is left next to it, %v", entries, err)
	}
}

func TestInstallLeavesNothingBehindWhenItFails(t *testing.T) {
	dir := t.TempDir()
	if err := install(filepath.Join(dir, "missing"), filepath.Join(dir, "installed")); err == nil {
		t.Error("no error")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
}
