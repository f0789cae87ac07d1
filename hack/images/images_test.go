package images

import (
	"os"
	"path/filepath"
	"testing"
)

func TestImageKeyDependsOnItsSourcesOnly(t *testing.T) {
	sources := filepath.Join(t.TempDir(), "images")
	if err := os.CopyFS(sources, os.DirFS("../../images")); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "binary")
	write := func(path, content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(binary, "old")
	// keys maps each image to its key.
	keys := func() map[string]string {
		t.Helper()
		groups, err := plan(sources, Options{Operator: binary})
		if err != nil {
			t.Fatal(err)
		}
		keys := map[string]string{}
		for _, group := range groups {
			for name := range group.targets {
				keys[name] = group.key
			}
		}
		return keys
	}
	before := keys()
	if want := len(Versions)*len(roles) + 3; len(before) != want {
		t.Errorf("planned %d images, want %d", len(before), want)
	}
	if before[Slurm("slurmd", "26.05")] == before[Slurm("slurmd", "24.11")] {
		t.Error("two Slurm versions have the same key")
	}
	write(binary, "new")
	write(filepath.Join(sources, "mariadb", "Dockerfile"), "FROM scratch")
	for name, key := range keys() {
		changed := key != before[name]
		if want := name == Operator || name == MariaDB; changed != want {
			t.Errorf("%s: key changed: %v, want %v", name, changed, want)
		}
	}
}
