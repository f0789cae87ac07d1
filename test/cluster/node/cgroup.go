package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

const (
	cgroupRoot   = "/sys/fs/cgroup"
	cgroupPrefix = "soc-"
)

// makeCgroups creates the cgroup for the pods of a kubelet in every hierarchy of the host: one per controller with
// cgroup v1, only one with v2.
func makeCgroups(name string) error {
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		dir := filepath.Join(hierarchy, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		// With v1 a new cpuset is empty, and nothing can run in it until it gets its parent's values.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			inherited, err := os.ReadFile(filepath.Join(hierarchy, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, file), inherited, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// cgroupsBelow lists the cgroups that match a pattern and all their descendants, deepest first: the order in which they
// can be removed.
func cgroupsBelow(pattern string) ([]string, error) {
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, hierarchy := range hierarchies {
		roots, err := filepath.Glob(filepath.Join(hierarchy, pattern))
		if err != nil {
			return nil, err
		}
		for _, root := range roots {
			err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					found = append(found, path)
				}
				return ignoreGone(err)
			})
			if err != nil {
				return nil, err
			}
		}
	}
	slices.Reverse(found)
	return found, nil
}

func cgroupHierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		return []string{cgroupRoot}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, err
	}
	var hierarchies []string
	for _, entry := range entries {
		if entry.IsDir() {
			hierarchies = append(hierarchies, filepath.Join(cgroupRoot, entry.Name()))
		}
	}
	return hierarchies, nil
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
