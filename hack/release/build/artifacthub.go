package build

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/slurm-operator/slurm-operator/hack/images"
)

// annotate adds what Artifact Hub shows about a release to the metadata of a chart:
// https://artifacthub.io/docs/topics/annotations/helm/.
func (b *build) annotate(text string) (string, error) {
	var chart map[string]any
	if err := yaml.Unmarshal([]byte(text), &chart); err != nil {
		return "", err
	}
	annotations, _ := chart["annotations"].(map[string]any)
	if annotations == nil {
		return "", fmt.Errorf("the metadata of the chart %v has no annotations", chart["name"])
	}
	annotations["artifacthub.io/prerelease"] = strconv.FormatBool(b.release.Prerelease())
	var annotation string
	var list any
	switch chart["name"] {
	case "slurm-operator-crds":
		crds, err := describeCRDs(b.Source.Dir)
		if err != nil {
			return "", err
		}
		annotation, list = "artifacthub.io/crds", crds
	case "slurm-operator":
		annotation, list = "artifacthub.io/images", b.describeImages(isOperator)
	default:
		annotation, list = "artifacthub.io/images", b.describeImages(isDefault)
	}
	described, err := yaml.Marshal(list)
	if err != nil {
		return "", err
	}
	annotations[annotation] = string(described)
	edited, err := yaml.Marshal(chart)
	return string(edited), err
}

func isOperator(image Image) bool { return image.Name == operatorImage }

// isDefault reports whether the slurm chart uses an image by default: one of the newest Slurm, or MariaDB.
func isDefault(image Image) bool {
	return image.Name == "mariadb" || strings.HasPrefix(image.Tag, images.Versions[0]+"-")
}

type describedImage struct {
	Name      string   `json:"name"`
	Image     string   `json:"image"`
	Platforms []string `json:"platforms"`
}

func (b *build) describeImages(include func(Image) bool) []describedImage {
	var list []describedImage
	for _, image := range b.release.Images {
		if !include(image) {
			continue
		}
		entry := describedImage{Name: image.Name, Image: b.release.Repository(image) + ":" + image.Tag}
		for _, platform := range image.Platforms {
			entry.Platforms = append(entry.Platforms, "linux/"+platform.Architecture)
		}
		list = append(list, entry)
	}
	return list
}

type describedCRD struct {
	Kind        string `json:"kind"`
	Version     string `json:"version"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
}

func describeCRDs(root string) ([]describedCRD, error) {
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	if err != nil {
		return nil, err
	}
	var list []describedCRD
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(content, &crd); err != nil {
			return nil, err
		}
		version := crd.Spec.Versions[len(crd.Spec.Versions)-1]
		description, _, _ := strings.Cut(version.Schema.OpenAPIV3Schema.Description, "\n")
		list = append(list, describedCRD{
			Kind: crd.Spec.Names.Kind, Version: version.Name, Name: crd.Name, DisplayName: crd.Spec.Names.Kind,
			Description: description,
		})
	}
	return list, nil
}
