//go:build integration

// Package charts_test tests the Helm charts with the real Helm and a real API server: every value is used, a typo in a
// value is refused, rendered manifests are accepted, and a release fits into the Secret in which Helm stores it.
package charts_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
	"github.com/slurm-operator/slurm-operator/hack/repo"
	"github.com/slurm-operator/slurm-operator/test/integration/apiserver"
)

var (
	server *apiserver.Server
	// charts is the charts' directory, and helmProgram the path of helm.
	charts, helmProgram string
)

func TestMain(m *testing.M) {
	os.Exit(apiserver.Run(m, func(started *apiserver.Server) error {
		server = started
		root, err := repo.Root()
		if err != nil {
			return err
		}
		dir, err := binaries.Helm.Build(context.Background(), os.Stderr)
		charts, helmProgram = filepath.Join(root, "charts"), filepath.Join(dir, "helm")
		return err
	}))
}

// values are the values of a chart.
type values = map[string]any

// helm runs Helm with values, which may be nil, and returns its output.
func helm(ctx context.Context, given values, arguments ...string) (string, error) {
	input, err := yaml.Marshal(given)
	if err != nil {
		return "", err
	}
	if given != nil {
		arguments = append(arguments, "--values=-")
	}
	return run(ctx, input, helmProgram, append(arguments, "--kubeconfig="+server.Kubeconfig)...)
}

// render renders a chart as it would be installed.
func render(ctx context.Context, chart string, given values, arguments ...string) (string, error) {
	return helm(ctx, given, append([]string{
		"template", "slurm-operator", filepath.Join(charts, chart), "--namespace=default", "--kube-version=1.36",
	}, arguments...)...)
}

// apply applies manifests with a server-side dry run.
func apply(ctx context.Context, manifests string) (string, error) {
	return run(ctx, []byte(manifests), server.Kubectl, "--kubeconfig="+server.Kubeconfig, "apply", "--server-side",
		"--dry-run=server", "--filename=-")
}

func run(ctx context.Context, input []byte, program string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(program), arguments[0], err, out)
	}
	return string(out), nil
}

// read reads values from a file in a chart.
func read(t *testing.T, chart, file string) values {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(charts, chart, file))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, content)
}

func parse(t *testing.T, content []byte) values {
	t.Helper()
	var found values
	if err := yaml.UnmarshalStrict(content, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// withValues are the charts that have values.
var withValues = []string{"slurm-operator", "slurm"}

// leaves calls visit for every value that is neither a mapping nor in a list, with the mapping that contains it.
func leaves(path string, all values, visit func(path, key string, in values)) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		value := all[key]
		if nested, ok := value.(values); ok && len(nested) > 0 {
			leaves(path+key+".", nested, visit)
			continue
		}
		visit(path+key, key, all)
	}
}

// sets returns the values files that a chart is tested with.
func sets(t *testing.T, chart string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(charts, chart, "ci", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		files[i] = "ci/" + filepath.Base(file)
	}
	return files
}
