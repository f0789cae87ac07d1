package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHasState(t *testing.T) {
	directory := t.TempDir()
	if err := HasState(directory); err == nil || !strings.Contains(err.Error(), "docs/backup.md") {
		t.Errorf("an empty directory is accepted as saved state, or the remedy is missing: %v", err)
	}
	file := filepath.Join(directory, "clustername")
	if err := os.WriteFile(file, []byte("slurm"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := HasState(directory); err != nil {
		t.Error(err)
	}
	if err := HasState(file); err == nil {
		t.Error("an unreadable path is accepted as saved state")
	}
}
