package images

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// packagesAnnotation is the annotation with the versions of Slurm's packages in an image, and of all packages from
// another Debian suite than the base's.
const packagesAnnotation = "slurm-operator/packages"

// packagesFile is where the script install-packages writes them: a package, its version and its suite in each line.
const packagesFile = "usr/local/share/slurm-packages"

const packagesSeparator = ", "

// recordPackages adds the annotation to all images in the layout that have the file.
func (l layout) recordPackages() error {
	index, err := l.index()
	if err != nil {
		return err
	}
	for i := range index.Manifests {
		image, err := l.read(nameOf(index.Manifests[i]))
		if err != nil {
			return err
		}
		for _, layer := range slices.Backward(image.manifest.Layers) {
			found, err := l.readLayer(layer.Digest, packagesFile, func(file io.Reader) error {
				packages, err := io.ReadAll(file)
				index.Manifests[i].Annotations[packagesAnnotation] = strings.Join(
					strings.Split(strings.TrimSpace(string(packages)), "\n"), packagesSeparator)
				return err
			})
			if err != nil {
				return fmt.Errorf("reading the packages of %s: %w", nameOf(image.descriptor), err)
			}
			if found {
				break
			}
		}
	}
	return l.writeIndex(index)
}

// logPackages writes a line with what is recorded for the images of the group, if anything is.
func (g *group) logPackages(log io.Writer, target layout) error {
	var packages []string
	for name := range g.targets {
		image, err := target.find(name)
		if err != nil {
			return err
		}
		if recorded := image.Annotations[packagesAnnotation]; recorded != "" {
			packages = append(packages, strings.Split(recorded, packagesSeparator)...)
		}
	}
	if len(packages) == 0 {
		return nil
	}
	slices.Sort(packages)
	_, err := fmt.Fprintf(log, "images of Slurm %s: %s\n", g.args["SLURM_VERSION"],
		strings.Join(slices.Compact(packages), packagesSeparator))
	return err
}
