package build

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Charts are the names of the charts, in the order in which they are installed.
var Charts = []string{"slurm-operator-crds", "slurm-operator", "slurm"}

// charts packages the charts. An upgrade of the operator's chart must not replace pods of Slurm, so there the default
// image has the moving tag; the chart of a Slurm cluster has the fixed tag of this release.
func (b *build) charts(ctx context.Context) error {
	operator, err := b.image(operatorImage)
	if err != nil {
		return err
	}
	slurm, err := b.image("slurmctld")
	if err != nil {
		return err
	}
	values := map[string]map[string]string{
		"slurm-operator": {
			"image.repository":      b.release.Repository(operator),
			"image.digest":          operator.Digest.String(),
			"slurmImage.repository": b.Registry,
			"slurmImage.tag":        cmp.Or(slurm.MovingTag, slurm.Tag),
		},
		"slurm": {
			"image.repository":         b.Registry,
			"image.tag":                slurm.Tag,
			"mariadb.image.repository": b.Registry + "/mariadb",
			"mariadb.image.tag":        b.Version,
		},
	}
	for _, name := range Charts {
		if err := b.chart(ctx, name, values[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// image returns the first image of a name: of Slurm's images, that of the newest version.
func (b *build) image(name string) (Image, error) {
	at := slices.IndexFunc(b.release.Images, func(image Image) bool { return image.Name == name })
	if at < 0 {
		return Image{}, fmt.Errorf("the release has no image %s", name)
	}
	return b.release.Images[at], nil
}

// chart packages a copy of a chart with other defaults of its values.
func (b *build) chart(ctx context.Context, name string, values map[string]string) error {
	dir := filepath.Join(b.work, "charts", name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(b.Source.Dir, "charts", name))); err != nil {
		return err
	}
	if err := edit(filepath.Join(dir, "values.yaml"), func(text string) (string, error) {
		return setValues(text, values)
	}); err != nil {
		return err
	}
	for file, change := range map[string]func(string) (string, error){
		"Chart.yaml": b.annotate, "README.md": b.relocate, "templates/NOTES.txt": b.relocate,
	} {
		if err := edit(filepath.Join(dir, file), change); err != nil {
			return err
		}
	}
	version := b.release.ChartVersion()
	if _, err := b.helm(ctx, "package", dir, "--version", version, "--app-version", b.Version, "--destination",
		b.work); err != nil {
		return err
	}
	archive := name + "-" + version + ".tgz"
	packed, err := os.ReadFile(filepath.Join(b.work, archive))
	if err != nil {
		return err
	}
	normal, err := normalize(packed, b.Source.Time)
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.path(archive), normal, 0o644); err != nil {
		return err
	}
	b.release.Charts = append(b.release.Charts, archive)
	// helm push writes the time of the file into the manifest of the chart.
	return os.Chtimes(b.path(archive), b.Source.Time, b.Source.Time)
}

// inCheckout matches charts in commands, which name their directory in a checkout.
var inCheckout = regexp.MustCompile(` charts/(slurm[a-z-]*)`)

// relocate makes the commands and links of a text work without a checkout.
func (b *build) relocate(text string) (string, error) {
	text = inCheckout.ReplaceAllString(text, " oci://"+b.release.ChartRegistry()+"/$1 --version "+b.release.ChartVersion())
	return strings.ReplaceAll(text, "](../../", "]("+home+"/blob/"+b.Version+"/"), nil
}

// helm runs Helm and returns its output.
func (b *build) helm(ctx context.Context, arguments ...string) ([]byte, error) {
	var problems bytes.Buffer
	command := exec.CommandContext(ctx, b.Helm, arguments...)
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("helm %s: %w: %s", arguments[0], err, problems.String())
	}
	return out, nil
}

// edit replaces the content of a file.
func edit(path string, change func(text string) (string, error)) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := change(string(content))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(changed), 0o644)
}

// setValues replaces strings in a values.yaml, by their paths, and keeps everything else, comments included. It is an
// error if the file has no such value.
func setValues(text string, values map[string]string) (string, error) {
	lines := strings.Split(text, "\n")
	var path []string
	set := map[string]bool{}
	for i, line := range lines {
		key, _, isMapping := strings.Cut(strings.TrimLeft(line, " "), ":")
		if !isMapping || strings.HasPrefix(key, "#") || strings.HasPrefix(key, "-") {
			continue
		}
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		if depth > len(path) {
			continue // in a text
		}
		path = append(path[:depth], key)
		name := strings.Join(path, ".")
		if value, found := values[name]; found {
			lines[i] = strings.Repeat("  ", depth) + key + ": " + strconv.Quote(value)
			set[name] = true
		}
	}
	for name := range values {
		if !set[name] {
			return "", fmt.Errorf("values.yaml has no %s", name)
		}
	}
	return strings.Join(lines, "\n"), nil
}

// normalize packs an archive again, sorted and with one time for all files: Helm writes the current one.
func normalize(packed []byte, at time.Time) ([]byte, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	var names []string
	archive := tar.NewReader(compressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			return nil, err
		}
		names = append(names, header.Name)
	}
	// Chart.yaml stays first: registries and Artifact Hub read it without reading the rest.
	slices.Sort(names[1:])
	var normal bytes.Buffer
	to := gzip.NewWriter(&normal)
	out := tar.NewWriter(to)
	for _, name := range names {
		if err := out.WriteHeader(&tar.Header{
			Name: name, Mode: 0o644, Size: int64(len(files[name])), ModTime: at,
		}); err != nil {
			return nil, err
		}
		if _, err := out.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(out.Close(), to.Close()); err != nil {
		return nil, err
	}
	return normal.Bytes(), nil
}
