package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	csvFile         = "manifests/" + name + ".clusterserviceversion.yaml"
	annotationsFile = "metadata/annotations.yaml"
	dockerfile      = "bundle.Dockerfile"
)

const description = `Runs Slurm clusters on Kubernetes: slurmctld, nodes, login pods, accounting and slurmrestd are
custom resources. Scale-in, updates and deletion drain Slurm nodes first, and wait for their jobs.

**Not tested with the Operator Lifecycle Manager**; tests only validate this bundle. Two things differ from an
installation with Helm: foreground deletion of a NodeSet, which deletes its pods at once with the jobs on them, is not
refused; and NodeSets keep their finalizers when the operator is removed. See the page about releases in the
documentation.
`

// files returns the files of the bundle.
func (b *bundle) files() (map[string][]byte, error) {
	csv, err := b.csv()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{dockerfile: b.dockerfile()}
	if files[csvFile], err = marshalCSV(csv); err != nil {
		return nil, err
	}
	if files[annotationsFile], err = yaml.Marshal(map[string]any{"annotations": b.annotations()}); err != nil {
		return nil, err
	}
	for _, definition := range b.crds {
		files["manifests/"+definition.file] = definition.content
	}
	for _, object := range b.objects {
		file := "manifests/" + object.GetName() + "." + strings.ToLower(object.GetKind()) + ".yaml"
		if _, exists := files[file]; exists {
			return nil, fmt.Errorf("two objects would be in %s", file)
		}
		if files[file], err = yaml.Marshal(object.Object); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// channel returns the channel of the version: the one for production, unless it is a prerelease.
func (b *bundle) channel() string {
	if strings.Contains(b.chart.Version, "-") {
		return "candidate"
	}
	return "stable"
}

// annotations describe the bundle's content. The bundle's image has them as labels.
func (b *bundle) annotations() map[string]string {
	const prefix = "operators.operatorframework.io.bundle."
	return map[string]string{
		prefix + "mediatype.v1":       "registry+v1",
		prefix + "manifests.v1":       "manifests/",
		prefix + "metadata.v1":        "metadata/",
		prefix + "package.v1":         name,
		prefix + "channels.v1":        b.channel(),
		prefix + "channel.default.v1": "stable",
	}
}

// dockerfile describes the bundle's image. Build it in the directory of the bundle.
func (b *bundle) dockerfile() []byte {
	var text strings.Builder
	text.WriteString("FROM scratch\n")
	annotations := b.annotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		fmt.Fprintf(&text, "LABEL %s=%s\n", key, annotations[key])
	}
	text.WriteString("COPY manifests /manifests/\nCOPY metadata /metadata/\n")
	return []byte(text.String())
}

func (b *bundle) csv() (*operatorsv1alpha1.ClusterServiceVersion, error) {
	number, err := semver.Parse(b.chart.Version)
	if err != nil {
		return nil, fmt.Errorf("the chart's version %s: %w", b.chart.Version, err)
	}
	examples, err := json.Marshal(b.examples)
	if err != nil {
		return nil, err
	}
	image := b.install.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image
	csv := &operatorsv1alpha1.ClusterServiceVersion{
		TypeMeta: metav1.TypeMeta{
			APIVersion: operatorsv1alpha1.ClusterServiceVersionAPIVersion,
			Kind:       operatorsv1alpha1.ClusterServiceVersionKind,
		},
		ObjectMeta: metav1.ObjectMeta{
			Name: name + ".v" + b.chart.Version,
			Annotations: map[string]string{
				"alm-examples":   string(examples),
				"capabilities":   b.chart.Annotations["artifacthub.io/operatorCapabilities"],
				"categories":     "AI/Machine Learning",
				"containerImage": image,
				"description":    b.chart.Description,
				"repository":     b.chart.Home,
				"operatorframework.io/suggested-namespace": name,
			},
		},
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			DisplayName: "Slurm operator",
			Description: description,
			Version:     version.OperatorVersion{Version: number},
			Maturity:    b.maturity(),
			// The chart has the same as a constraint.
			MinKubeVersion: "1.31.0",
			Keywords:       b.chart.Keywords,
			Provider:       operatorsv1alpha1.AppLink{Name: name, URL: b.chart.Home},
			Links:          []operatorsv1alpha1.AppLink{{Name: "Source and documentation", URL: b.chart.Home}},
			Icon: []operatorsv1alpha1.Icon{{
				Data: base64.StdEncoding.EncodeToString(b.icon), MediaType: "image/svg+xml",
			}},
			InstallModes: installModes(),
			InstallStrategy: operatorsv1alpha1.NamedInstallStrategy{
				StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment, StrategySpec: b.install,
			},
			WebhookDefinitions: b.webhooks,
			RelatedImages:      []operatorsv1alpha1.RelatedImage{{Name: name, Image: image}},
		},
	}
	for _, definition := range b.crds {
		csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned, definition.describe()...)
	}
	return csv, nil
}

func (b *bundle) maturity() string {
	if strings.HasPrefix(b.chart.Version, "0.") {
		return "alpha"
	}
	return "stable"
}

// installModes are all of them: the operator manages the namespaces of its OperatorGroup.
func installModes() []operatorsv1alpha1.InstallMode {
	var modes []operatorsv1alpha1.InstallMode
	for _, mode := range []operatorsv1alpha1.InstallModeType{
		operatorsv1alpha1.InstallModeTypeOwnNamespace, operatorsv1alpha1.InstallModeTypeSingleNamespace,
		operatorsv1alpha1.InstallModeTypeMultiNamespace, operatorsv1alpha1.InstallModeTypeAllNamespaces,
	} {
		modes = append(modes, operatorsv1alpha1.InstallMode{Type: mode, Supported: true})
	}
	return modes
}

// describe describes each version of a CRD.
func (c crd) describe() []operatorsv1alpha1.CRDDescription {
	var descriptions []operatorsv1alpha1.CRDDescription
	for _, version := range c.Spec.Versions {
		text, _, _ := strings.Cut(version.Schema.OpenAPIV3Schema.Description, "\n")
		descriptions = append(descriptions, operatorsv1alpha1.CRDDescription{
			Name: c.Name, Version: version.Name, Kind: c.Spec.Names.Kind, DisplayName: c.Spec.Names.Kind, Description: text,
		})
	}
	return descriptions
}

// marshalCSV omits what only OLM sets, which has no omitempty.
func marshalCSV(csv *operatorsv1alpha1.ClusterServiceVersion) ([]byte, error) {
	content, err := json.Marshal(csv)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(content, &fields); err != nil {
		return nil, err
	}
	delete(fields, "status")
	if spec, ok := fields["spec"].(map[string]any); ok {
		delete(spec, "cleanup")
	}
	return yaml.Marshal(fields)
}
