// Package debian writes small Debian archives, and configurations of apt that use only these, for tests of what may
// change in Debian's archive.
package debian

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Package is a binary package.
type Package struct {
	Name, Version, Source, Depends string
	// Files maps paths to contents. A package without files is only in the list.
	Files map[string]string
}

// Archive is a directory with an archive that is not signed.
type Archive string

// Publish replaces the packages of a suite.
func (a Archive) Publish(t *testing.T, suite string, packages ...Package) {
	t.Helper()
	var list strings.Builder
	for _, p := range packages {
		control := fmt.Sprintf("Package: %s\nSource: %s\nVersion: %s\nArchitecture: all\n"+
			"Maintainer: test <test@localhost>\nDescription: test\n", p.Name, cmp.Or(p.Source, p.Name), p.Version)
		if p.Depends != "" {
			control += "Depends: " + p.Depends + "\n"
		}
		file := filepath.Join("pool", p.Name+"_"+p.Version+".deb")
		var content []byte
		if p.Files != nil {
			content = a.build(t, file, control, p.Files)
		}
		fmt.Fprintf(&list, "%sFilename: %s\nSize: %d\nSHA256: %x\n\n", control, file,
			max(1, len(content)), sha256.Sum256(content)) // apt refuses a size of 0
	}
	index := "main/binary-" + runtime.GOARCH + "/Packages"
	write(t, filepath.Join(string(a), "dists", suite, index), list.String())
	write(t, filepath.Join(string(a), "dists", suite, "Release"), fmt.Sprintf(
		"Suite: %s\nCodename: %[1]s\nComponents: main\nArchitectures: %s\nSHA256:\n %x %d %s\n",
		suite, runtime.GOARCH, sha256.Sum256([]byte(list.String())), list.Len(), index))
}

// build builds a package.
func (a Archive) build(t *testing.T, file, control string, files map[string]string) []byte {
	t.Helper()
	tree := t.TempDir()
	if err := os.Chmod(tree, 0o755); err != nil { //nolint:gosec // dpkg-deb requires it
		t.Fatal(err)
	}
	write(t, filepath.Join(tree, "DEBIAN/control"), control)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		write(t, filepath.Join(tree, path), files[path])
	}
	target := filepath.Join(string(a), file)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), "dpkg-deb", "--build", "--root-owner-group", tree, target).
		CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	content, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Insecure is the configuration with which apt accepts an archive that is not signed.
const Insecure = `Acquire::AllowInsecureRepositories "true";
APT::Get::AllowUnauthenticated "true";
`

// Source returns the line of sources.list for a suite of an archive in a directory.
func Source(dir, suite string) string { return "deb copy:" + dir + " " + suite + " main\n" }

// Use makes apt, when it is run by this test, use only the suites of the archive, with a configuration and lists of its
// own. It returns the directory of the configuration. Without apt, it skips the test.
func (a Archive) Use(t *testing.T, suites ...string) string {
	t.Helper()
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("needs apt:", err)
	}
	root := t.TempDir()
	etc := filepath.Join(root, "etc")
	for _, dir := range []string{
		"etc/apt.conf.d", "etc/sources.list.d", "etc/preferences.d", "etc/trusted.gpg.d", "lists/partial", "cache",
	} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var sources strings.Builder
	for _, suite := range suites {
		sources.WriteString(Source(string(a), suite))
	}
	write(t, filepath.Join(etc, "sources.list"), sources.String())
	write(t, filepath.Join(root, "status"), "")
	config := filepath.Join(root, "apt.conf")
	write(t, config, Insecure+fmt.Sprintf("Dir::Etc %q;\nDir::State::Lists %q;\nDir::State::Status %q;\nDir::Cache %q;\n",
		etc, filepath.Join(root, "lists"), filepath.Join(root, "status"), filepath.Join(root, "cache"))+
		"APT::Sandbox::User \"\";\n")
	t.Setenv("APT_CONFIG", config)
	return etc
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
