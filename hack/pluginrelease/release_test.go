package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/plugin/command"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

// written writes a release for platforms whose programs say what they are built for, and returns its files.
func written(t *testing.T, platforms ...string) map[string][]byte {
	t.Helper()
	modified, err := modificationTime("1772712000")
	if err != nil {
		t.Fatal(err)
	}
	release := &release{
		version: "v0.1.0", baseURL: "https://example.org/v0.1.0", homepage: "https://example.org", root: "../..",
		modified: modified,
		build: func(_ context.Context, system, architecture, to string) error {
			return os.WriteFile(to, []byte(system+" "+architecture), 0o600)
		},
	}
	out := t.TempDir()
	if err := release.write(t.Context(), out, platforms); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	err = filepath.WalkDir(out, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, _ := filepath.Rel(out, path) // path is below out
		files[filepath.ToSlash(relative)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// unpacked returns the files of an archive with their modes.
func unpacked(t *testing.T, name string, content []byte) (files map[string]string, modes map[string]os.FileMode) {
	t.Helper()
	files, modes = map[string]string{}, map[string]os.FileMode{}
	add := func(name string, mode os.FileMode, content io.Reader) {
		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		files[name], modes[name] = string(text), mode
	}
	if strings.HasSuffix(name, ".zip") {
		archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range archive.File {
			opened, err := each.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(each.Name, each.Mode(), opened)
		}
		return files, modes
	}
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, modes
		}
		if err != nil {
			t.Fatal(err)
		}
		add(header.Name, header.FileInfo().Mode(), archive)
	}
}

func TestArchiveHasProgramCompletionsAndManPages(t *testing.T) {
	some := []string{"linux/arm64", "windows/amd64"}
	files := written(t, some...)
	for _, platform := range some {
		system, architecture, _ := strings.Cut(platform, "/")
		extension := ".tar.gz"
		if system == windows {
			extension = ".zip"
		}
		archive := "kubectl-slurm_v0.1.0_" + system + "_" + architecture + extension
		content, modes := unpacked(t, archive, files[archive])
		if program := program(system); content[program] != system+" "+architecture || modes[program] != 0o755 {
			t.Errorf("%s: %s is %q with the mode %s", archive, program, content[program], modes[program])
		}
		for _, want := range []string{
			"LICENSE", "completions/kubectl-slurm.bash", "completions/_kubectl-slurm", "completions/kubectl-slurm.fish",
			"completions/kubectl-slurm.ps1", "man/man1/kubectl-slurm.1", "man/man1/kubectl-slurm-config-check.1",
		} {
			if content[want] == "" || modes[want] != 0o644 {
				t.Errorf("%s: %s has %d bytes and the mode %s", archive, want, len(content[want]), modes[want])
			}
		}
		if _, has := content[completer]; has != (system != windows) {
			t.Errorf("%s: it has %s: %t", archive, completer, has)
		}
	}
}

func TestChecksumsAndManifestAreThoseOfTheArchives(t *testing.T) {
	files := written(t, platforms...)
	lines := strings.Split(strings.TrimSpace(string(files["kubectl-slurm_v0.1.0_checksums.txt"])), "\n")
	if len(lines) != len(platforms) {
		t.Errorf("%d checksums, want %d", len(lines), len(platforms))
	}
	manifest := string(files["krew/slurm.yaml"])
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		if want := sha256.Sum256(files[name]); sum != hex.EncodeToString(want[:]) {
			t.Errorf("%s: %s, want %x", name, sum, want)
		}
		if !strings.Contains(manifest, "sha256: "+sum) || !strings.Contains(manifest, "https://example.org/v0.1.0/"+name) {
			t.Errorf("the manifest lacks %s", name)
		}
		// Archives differ with the texts of commands; the rest is compared.
		manifest = strings.Replace(manifest, sum, "(checksum)", 1)
	}
	golden.Compare(t, "slurm.yaml", manifest)
}

func TestReleaseIsReproducible(t *testing.T) {
	some := []string{"darwin/arm64", "windows/arm64"}
	if diff := cmp.Diff(written(t, some...), written(t, some...)); diff != "" {
		t.Error(diff)
	}
}

// TestManPages checks that each command has a page, and one of them in full.
func TestManPages(t *testing.T) {
	pages := map[string]string{}
	for _, page := range manPages(command.New("v0.1.0"), "v0.1.0") {
		pages[page.name] = string(page.content)
	}
	var walk func(*cobra.Command)
	walk = func(each *cobra.Command) {
		if !isDocumented(each) {
			return
		}
		page := pages["man/man1/"+pageName(each)+".1"]
		for _, want := range []string{".TH ", ".SH NAME\n", roff(each.Short)} {
			if !strings.Contains(page, want) {
				t.Errorf("the page of %s lacks %q", each.CommandPath(), want)
			}
		}
		for _, child := range each.Commands() {
			walk(child)
		}
	}
	walk(command.New("v0.1.0"))
	golden.Compare(t, "kubectl-slurm-nodes.1", pages["man/man1/kubectl-slurm-nodes.1"])
}

func TestTextsAreEscapedForRoff(t *testing.T) {
	for text, want := range map[string]string{
		"--watch": `\-\-watch`, "a\n.b\n'c": "a\n\\&.b\n\\&'c", `a\b`: `a\eb`, "": "",
	} {
		if got := roff(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestInvalidFlagsAreRefused(t *testing.T) {
	base := "-base-url=https://example.org/x"
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"no version":            {[]string{base}, "is not a semantic version"},
		"a version without v":   {[]string{base, "-version=0.1.0"}, "is not a semantic version"},
		"no URL":                {[]string{"-version=v0.1.0"}, "is not a URL"},
		"an unknown platform":   {[]string{base, "-version=v0.1.0", "-platforms=plan9/amd64"}, `unknown platform "plan9/`},
		"an argument too many":  {[]string{base, "-version=v0.1.0", "all"}, `unexpected argument "all"`},
		"a release candidate":   {[]string{base, "-version=v0.1.0-rc.1", "-platforms=none"}, `unknown platform "none"`},
		"a version with spaces": {[]string{base, "-version=v0.1.0 x"}, "is not a semantic version"},
	} {
		out := "-out=" + t.TempDir()
		err := run(t.Context(), slices.Concat(test.arguments[:len(test.arguments)-1], []string{out},
			test.arguments[len(test.arguments)-1:]))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
