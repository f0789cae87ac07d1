package main

import (
	"sigs.k8s.io/yaml"
)

// A manifest describes the plugin for krew.
type manifest struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   manifestMetadata `json:"metadata"`
	Spec       manifestSpec     `json:"spec"`
}

type manifestMetadata struct {
	Name string `json:"name"`
}

type manifestSpec struct {
	Version          string             `json:"version"`
	Homepage         string             `json:"homepage"`
	ShortDescription string             `json:"shortDescription"`
	Description      string             `json:"description"`
	Caveats          string             `json:"caveats"`
	Platforms        []manifestPlatform `json:"platforms"`
}

type manifestPlatform struct {
	Selector manifestSelector `json:"selector"`
	URI      string           `json:"uri"`
	SHA256   string           `json:"sha256"`
	Bin      string           `json:"bin"`
}

type manifestSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

const (
	description = `Shows Slurm clusters that slurm-operator runs: how they are (status), what is wrong and how to
repair it (doctor), why a node takes no jobs or a job waits (why), what the operator does next
(plan), nodes and jobs with their pods, slurm.conf with who set each line, logs and events.
It uses the rights of its user and changes nothing unless asked to.
`
	caveats = `To complete arguments, copy kubectl_complete-slurm from the archive to a directory in PATH.
`
)

// manifest returns krew's manifest for archives.
func (r *release) manifest(archives []archive) ([]byte, error) {
	plugin := manifest{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: manifestMetadata{Name: "slurm"},
		Spec: manifestSpec{
			Version: r.version, Homepage: r.homepage, ShortDescription: "Show how Slurm clusters are, why, and what to do",
			Description: description, Caveats: caveats,
		},
	}
	for _, each := range archives {
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, manifestPlatform{
			Selector: manifestSelector{MatchLabels: map[string]string{"os": each.system, "arch": each.architecture}},
			URI:      r.baseURL + "/" + each.file, SHA256: each.sum, Bin: program(each.system),
		})
	}
	return yaml.Marshal(plugin)
}
