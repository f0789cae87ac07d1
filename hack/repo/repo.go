// Package repo finds the repository that a development tool or a test works on.
package repo

import (
	"errors"
	"os"
	"path/filepath"
)

// Root returns the nearest directory, from the working directory upwards, with the product's module: the one with both
// go.mod and hack/tools, because the tools' modules are deeper in the tree.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if isFile(filepath.Join(dir, "go.mod")) && isFile(filepath.Join(dir, "hack", "tools", "go.mod")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside the slurm-operator repository: run this from a checkout")
		}
		dir = parent
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
