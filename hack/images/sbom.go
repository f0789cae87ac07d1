package images

import (
	"bufio"
	"context"
	"debug/buildinfo"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A bill is an SBOM in CycloneDX JSON: the components of an image, for vulnerability scanners.
type bill struct {
	Format     string      `json:"bomFormat"`
	Version    string      `json:"specVersion"`
	Revision   int         `json:"version"`
	Metadata   subject     `json:"metadata"`
	Components []component `json:"components"`
}

type subject struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// URL is the package URL, by which scanners identify a component.
	URL string `json:"purl,omitempty"`
}

// WriteBills writes an SBOM for each of the product's images in the layout into a directory.
func WriteBills(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return eachProductImage(ctx, func(name string, layers []string) error {
		bill, err := billOf(name, layers)
		if err != nil {
			return err
		}
		file := strings.NewReplacer("/", "-", ":", "-").Replace(name) + ".cdx.json"
		return writeJSON(filepath.Join(dir, file), bill)
	})
}

// eachProductImage calls a function with the name and the unpacked layers of each of the product's images in the
// layout.
func eachProductImage(ctx context.Context, visit func(name string, layers []string) error) error {
	source, err := openLayout()
	if err != nil {
		return err
	}
	index, err := source.index()
	if err != nil {
		return err
	}
	for i := range index.Manifests {
		name := nameOf(index.Manifests[i])
		if !strings.HasPrefix(name, "slurm-operator/") {
			continue
		}
		unpacked, err := Unpack(ctx, name)
		if err != nil {
			return err
		}
		if err := visit(name, unpacked.Layers); err != nil {
			return err
		}
	}
	return nil
}

// billOf returns the SBOM of an image: the Debian packages in its layers or, without any, the modules of its Go
// programs.
func billOf(name string, layers []string) (bill, error) {
	is := emptyBill(name)
	for _, layer := range slices.Backward(layers) {
		status, err := os.Open(filepath.Join(layer, dpkgStatus))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return bill{}, err
		}
		defer status.Close()
		is.Components, err = debianPackages(status, isInstalled) // the uppermost list of packages is complete
		return is, err
	}
	for _, layer := range layers {
		modules, err := goModules(layer)
		if err != nil {
			return bill{}, err
		}
		is.Components = append(is.Components, modules...)
	}
	return is, nil
}

// emptyBill returns an SBOM without components.
func emptyBill(name string) bill {
	image, tag, _ := strings.Cut(name, ":")
	return bill{
		Format: "CycloneDX", Version: "1.6", Revision: 1,
		Metadata: subject{component{Type: "container", Name: image, Version: tag}},
	}
}

// dpkgStatus is dpkg's list of installed packages.
const dpkgStatus = "var/lib/dpkg/status"

// isInstalled reports whether a package in dpkg's own list is installed.
func isInstalled(fields map[string]string) bool {
	return strings.HasSuffix(fields["Status"], " installed")
}

// debianPackages reads a list of Debian packages, and returns those with the wanted fields.
func debianPackages(list io.Reader, wanted func(fields map[string]string) bool) ([]component, error) {
	var packages []component
	fields := map[string]string{}
	end := func() {
		if fields["Package"] != "" && wanted(fields) {
			packages = append(packages, component{
				Type: "library", Name: fields["Package"], Version: fields["Version"],
				URL: "pkg:deb/debian/" + fields["Package"] + "@" + url.QueryEscape(fields["Version"]) + "?arch=" +
					fields["Architecture"],
			})
		}
		clear(fields)
	}
	lines := bufio.NewScanner(list)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if lines.Text() == "" {
			end()
		} else if field, value, found := strings.Cut(lines.Text(), ": "); found && !strings.HasPrefix(field, " ") {
			fields[field] = value
		}
	}
	end()
	return packages, lines.Err()
}

// goModules returns the modules of the Go programs below a directory.
func goModules(dir string) ([]component, error) {
	var modules []component
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // not a Go program
		}
		add := func(module, version string) {
			modules = append(modules, component{
				Type: "library", Name: module, Version: version,
				URL: "pkg:golang/" + module + "@" + url.QueryEscape(version),
			})
		}
		add("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
		for _, module := range info.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			add(module.Path, module.Version)
		}
		return nil
	})
	return modules, err
}
