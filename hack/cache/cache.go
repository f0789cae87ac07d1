// Package cache keeps things that are slow to build, such as binaries and images, outside the repository. An entry has
// a name, and a key derived from everything it is built from. It is built once, in a separate directory, and gets its
// final name only when it is complete, so that an interrupted build leaves nothing that looks like a result.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Dir returns the root of the cache: $SLURM_OPERATOR_CACHE, or slurm-operator in the user's cache directory.
func Dir() (string, error) {
	if dir := os.Getenv("SLURM_OPERATOR_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a cache directory (set SLURM_OPERATOR_CACHE to choose one): %w", err)
	}
	return filepath.Join(dir, "slurm-operator"), nil
}

// Key hashes the given parts into a short key that is safe in a file name.
func Key(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])[:16]
}

// KeyOfTree hashes the names, modes and contents of all files below root, in order.
func KeyOfTree(root string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content, err := os.Open(path)
		if err != nil {
			return err
		}
		defer content.Close()
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s\x00%o\x00%d\x00", name, info.Mode().Perm(), info.Size())
		_, err = io.Copy(sum, content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("keying %s: %w", root, err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// Entry returns the directory of the entry with a name and key. If there is none, fill creates it in an empty
// directory. Concurrent callers, also in other processes, wait for the one that fills it.
func Entry(ctx context.Context, name, key string, fill func(ctx context.Context, dir string) error) (string, error) {
	root, err := Dir()
	if err != nil {
		return "", err
	}
	final := filepath.Join(root, name, key)
	if exists(final) {
		return final, nil
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return "", err
	}
	unlock, err := Lock(final + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(final) {
		return final, nil
	}
	partial := final + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return "", err
	}
	if err := os.MkdirAll(partial, 0o755); err != nil {
		return "", err
	}
	if err := fill(ctx, partial); err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	return final, os.Rename(partial, final)
}

// Lock takes an exclusive lock on the file at path, and creates the file if needed. It waits until it has the lock.
func Lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
