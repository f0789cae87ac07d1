package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The files that are written last.
const (
	notesFile  = "notes.md"
	imagesFile = "images.txt"
)

// notes writes the release notes: the section of the version in CHANGELOG.md. Only a prerelease may have none.
func (b *build) notes(context.Context) error {
	changelog, err := os.ReadFile(filepath.Join(b.Source.Dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	section, found := changesOf(string(changelog), b.release.ChartVersion())
	if !found && !b.release.Prerelease() {
		return fmt.Errorf("CHANGELOG.md has no section %s: rename the section Unreleased", b.release.ChartVersion())
	}
	return os.WriteFile(b.path(notesFile), []byte(section), 0o644)
}

// changesOf returns the section of a version in a changelog, without its heading.
func changesOf(changelog, version string) (section string, found bool) {
	_, after, found := strings.Cut(changelog, "\n## "+version+" ")
	if !found {
		return "", false
	}
	_, after, _ = strings.Cut(after, "\n")
	section, _, _ = strings.Cut(after, "\n## ")
	return strings.TrimSpace(section) + "\n", true
}

// finish writes the list of images, for mirrors and scanners, what the release contains, and the checksums of all
// files. The layout has none: the names of its files are checksums.
func (b *build) finish(context.Context) error {
	var list strings.Builder
	for _, image := range b.release.Images {
		fmt.Fprintf(&list, "%s:%s@%s\n", b.release.Repository(image), image.Tag, image.Digest)
	}
	if err := os.WriteFile(b.path(imagesFile), []byte(list.String()), 0o644); err != nil {
		return err
	}
	if err := b.writeJSON(Metadata, b.release); err != nil {
		return err
	}
	// Left by the layout's lock.
	if err := os.RemoveAll(b.path(Layout + ".lock")); err != nil {
		return err
	}
	if err := os.RemoveAll(b.path(Checksums)); err != nil {
		return err
	}
	entries, err := os.ReadDir(b.Out) // sorted by name
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		hash, err := b.hash(entry.Name())
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", hash, entry.Name())
	}
	return os.WriteFile(b.path(Checksums), []byte(sums.String()), 0o644)
}
