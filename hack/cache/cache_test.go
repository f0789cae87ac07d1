package cache_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/cache"
)

func TestEntryIsFilledOnceByConcurrentCallers(t *testing.T) {
	t.Setenv("SLURM_OPERATOR_CACHE", t.TempDir())
	var fills atomic.Int32
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			dir, err := cache.Entry(t.Context(), "thing", "k1", func(_ context.Context, dir string) error {
				fills.Add(1)
				return os.WriteFile(filepath.Join(dir, "made"), []byte("yes"), 0o644)
			})
			if err != nil {
				t.Error(err)
				return
			}
			if content, err := os.ReadFile(filepath.Join(dir, "made")); err != nil || string(content) != "yes" {
				t.Errorf("entry holds %q, %v", content, err)
			}
		})
	}
	callers.Wait()
	if fills.Load() != 1 {
		t.Errorf("filled %d times, want 1", fills.Load())
	}
}

func TestFailedFillLeavesNoEntry(t *testing.T) {
	t.Setenv("SLURM_OPERATOR_CACHE", t.TempDir())
	interrupted := errors.New("interrupted")
	fail := func(_ context.Context, dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "half"), nil, 0o644); err != nil {
			return err
		}
		return interrupted
	}
	if _, err := cache.Entry(t.Context(), "thing", "k1", fail); !errors.Is(err, interrupted) {
		t.Fatalf("got error %v, want that of the fill", err)
	}
	dir, err := cache.Entry(t.Context(), "thing", "k1", func(context.Context, string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("second fill started with %v, %v, want an empty directory", left, err)
	}
}

func TestKeyOfTreeChangesWithNameModeAndContent(t *testing.T) {
	key := func(name, content string, mode os.FileMode) string {
		t.Helper()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		key, err := cache.KeyOfTree(dir)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	base := key("a", "x", 0o644)
	if again := key("a", "x", 0o644); again != base {
		t.Errorf("the same tree has keys %s and %s", base, again)
	}
	for what, other := range map[string]string{
		"name":    key("b", "x", 0o644),
		"mode":    key("a", "x", 0o755),
		"content": key("a", "y", 0o644),
	} {
		if other == base {
			t.Errorf("a changed %s keeps the key", what)
		}
	}
}
