package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"runtime"
	"strings"
)

// home is where the project is.
const home = "https://github.com/slurm-operator/slurm-operator"

// Types of the provenance: https://slsa.dev/spec/v1.0/provenance.
const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	// buildType identifies the meaning of the parameters.
	buildType = home + "/blob/main/docs/releases.md#provenance"
)

// Statement says how an image was built.
type Statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type predicate struct {
	Definition definition `json:"buildDefinition"`
	Run        runDetails `json:"runDetails"`
}

type definition struct {
	Type         string     `json:"buildType"`
	Parameters   parameters `json:"externalParameters"`
	Dependencies []resource `json:"resolvedDependencies"`
}

// parameters are those of make release.
type parameters struct {
	Version  string `json:"version"`
	Registry string `json:"registry"`
}

type runDetails struct {
	Builder    builder    `json:"builder"`
	Byproducts []resource `json:"byproducts"`
}

type builder struct {
	ID      string            `json:"id"`
	Version map[string]string `json:"version"`
}

// resource identifies something by its digest.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

// provenance writes a file about each image. It contains no time, and so does not change if the release is built again.
func (b *build) provenance(context.Context) error {
	for _, image := range b.release.Images {
		statement, err := b.statement(image)
		if err != nil {
			return err
		}
		if err := b.writeJSON(image.Provenance, statement); err != nil {
			return err
		}
	}
	return nil
}

// statement is about an image for all architectures, and its SBOMs, which list everything that it contains.
func (b *build) statement(image Image) (Statement, error) {
	sha256Of := func(hash string) map[string]string { return map[string]string{"sha256": hash} }
	subjects := []resource{{Name: b.release.Repository(image), Digest: sha256Of(image.Digest.Encoded())}}
	var bills []resource
	for _, platform := range image.Platforms {
		subjects = append(subjects, resource{
			Name: b.release.Repository(image), Digest: sha256Of(platform.Digest.Encoded()),
		})
		hash, err := b.hash(platform.SBOM)
		if err != nil {
			return Statement{}, err
		}
		bills = append(bills, resource{Name: platform.SBOM, Digest: sha256Of(hash)})
	}
	return Statement{
		Type: statementType, Subject: subjects, PredicateType: predicateType,
		Predicate: predicate{
			Definition: definition{
				Type:       buildType,
				Parameters: parameters{Version: b.Version, Registry: b.Registry},
				Dependencies: []resource{{
					URI: "git+" + home, Digest: map[string]string{"gitCommit": b.Source.Commit},
				}},
			},
			Run: runDetails{
				Builder: builder{ID: b.Builder, Version: map[string]string{
					"go": strings.TrimPrefix(runtime.Version(), "go"),
				}},
				Byproducts: bills,
			},
		},
	}, nil
}

// hash returns the SHA-256 of a file of the release.
func (b *build) hash(name string) (string, error) {
	content, err := os.ReadFile(b.path(name))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}
