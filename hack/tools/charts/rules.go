package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// A part is what the chart grants in one role: the rules of a role from controller-gen, limited to some resources.
type part struct {
	// name is the name of the template with the rules, after slurm-operator.rules.
	name string
	role string
	keep func(resource string) bool
}

const webhookRole = "slurm-operator-webhook"

// parts are all parts. Together, the parts of a role keep all its resources.
var parts = []part{
	{"manager.cluster", "slurm-operator", isOneOf(clusterWide)},
	{"manager.own", "slurm-operator", isOneOf(own)},
	{"manager.namespaces", "slurm-operator", func(resource string) bool {
		return !slices.Contains(clusterWide, resource) && !slices.Contains(own, resource)
	}},
	{"webhook.namespaces", webhookRole, isOneOf(nil)},
	{"webhook.secrets", webhookRole + "-secrets", isOneOf(nil)},
	{
		"webhook.cluster", webhookRole + "-cluster",
		func(resource string) bool { return !slices.Contains(configurations, resource) },
	},
	{"webhook.configurations", webhookRole + "-cluster", isOneOf(configurations)},
	{"webhook.certificate", webhookRole + "-certificate", isOneOf(nil)},
}

// Resources by the scope in which the manager needs them, as group/resource; all others are needed in the managed
// namespaces.
var (
	clusterWide = []string{
		"/nodes", "authentication.k8s.io/tokenreviews", "authorization.k8s.io/subjectaccessreviews",
	}
	configurations = []string{
		"admissionregistration.k8s.io/mutatingwebhookconfigurations",
		"admissionregistration.k8s.io/validatingwebhookconfigurations",
	}
	// own are needed in the operator's own namespace. The leader records an event when it is elected.
	own = []string{"/events", "coordination.k8s.io/leases"}
)

// isOneOf returns a filter for the given resources, or for all if none are given.
func isOneOf(resources []string) func(string) bool {
	return func(resource string) bool { return len(resources) == 0 || slices.Contains(resources, resource) }
}

// names replaces the object names in the markers with those of the chart.
var names = strings.NewReplacer(
	"- slurm-operator-webhook-certificate\n", "- {{ include \"slurm-operator.webhook\" . }}-certificate\n",
	"- slurm-operator\n", "- {{ include \"slurm-operator.webhook\" . }}\n",
)

// writeRules writes the rules of all parts as named templates.
func writeRules(root string) error {
	roles, err := readRoles(filepath.Join(root, "config", "rbac"))
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "{{/* %s */}}\n", notice)
	for _, part := range parts {
		rules, found := roles[part.role]
		if !found {
			return fmt.Errorf("there is no role %s", part.role)
		}
		content, err := sigsyaml.Marshal(part.of(rules))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "\n{{- define \"slurm-operator.rules.%s\" -}}\n%s{{- end }}\n", part.name,
			names.Replace(string(content)))
	}
	return os.WriteFile(filepath.Join(root, "charts", "slurm-operator", "templates", "_rules.tpl"),
		[]byte(text.String()), 0o644)
}

// of returns the rules, limited to the resources of the part.
func (p part) of(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	kept := []rbacv1.PolicyRule{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			limited := rule
			limited.APIGroups = []string{group}
			limited.Resources = slices.DeleteFunc(slices.Clone(rule.Resources),
				func(resource string) bool { return !p.keep(group + "/" + resource) })
			if len(limited.Resources) > 0 {
				kept = append(kept, limited)
			}
		}
	}
	return kept
}

// readRoles reads the rules of all roles in a directory, by the name of the role.
func readRoles(dir string) (map[string][]rbacv1.PolicyRule, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*role.yaml"))
	if err != nil {
		return nil, err
	}
	roles := map[string][]rbacv1.PolicyRule{}
	for _, file := range files {
		content, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer content.Close()
		for documents := yaml.NewYAMLOrJSONDecoder(content, 4096); ; {
			var role rbacv1.ClusterRole // a Role has the same fields
			err := documents.Decode(&role)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			roles[role.Name] = role.Rules
		}
	}
	return roles, nil
}
