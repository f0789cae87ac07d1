package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// writeWebhooks writes the webhooks of both configurations as named templates. The chart itself sets clientConfig and
// failurePolicy.
func writeWebhooks(root string) error {
	content, err := os.Open(filepath.Join(root, "config", "webhook", "manifests.yaml"))
	if err != nil {
		return err
	}
	defer content.Close()
	var text strings.Builder
	fmt.Fprintf(&text, "{{/* %s */}}\n", notice)
	for documents := yaml.NewYAMLOrJSONDecoder(content, 4096); ; {
		var configuration struct {
			Kind     string   `json:"kind"`
			Webhooks []object `json:"webhooks"`
		}
		err := documents.Decode(&configuration)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		webhooks, err := sigsyaml.Marshal(configuration.Webhooks)
		if err != nil {
			return err
		}
		kind := strings.TrimSuffix(configuration.Kind, "WebhookConfiguration")
		fmt.Fprintf(&text, "\n{{- define \"slurm-operator.webhooks.%s\" -}}\n%s{{- end }}\n", kind, webhooks)
	}
	return os.WriteFile(filepath.Join(root, "charts", "slurm-operator", "templates", "_webhooks.tpl"),
		[]byte(text.String()), 0o644)
}
