package command

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
)

func TestUpgradePlan(t *testing.T) {
	out, err := run(t, loaded(t, "cluster.yaml"), "upgrade", "plan", "--to=26.05")
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, step := range []string{"slurmdbd: Accounting slurm", "slurmctld: Controller slurm", "slurmd: NodeSet gpu"} {
		if at := strings.Index(out, step); at <= last {
			t.Errorf("%q is missing or too early:\n%s", step, out)
		} else {
			last = at
		}
	}
}

func TestEventsOfAnEmptyCluster(t *testing.T) {
	out, err := run(t, loaded(t, "cluster.yaml"), "events", "--for=nodeset/gpu")
	if err != nil || !strings.Contains(out, "there are no events") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestLogsWithoutPods(t *testing.T) {
	if _, err := run(t, loaded(t, "config.yaml"), "logs"); err == nil || !strings.Contains(err.Error(), "no pod") {
		t.Error(err)
	}
}

func TestMigrateValues(t *testing.T) {
	_, err := run(t, loaded(t, "cluster.yaml"), "migrate", "values", "--chart=other", "--file=testdata/cluster.yaml")
	if err == nil {
		t.Error("an unknown chart is accepted")
	}
}

// A report never asks for Secrets, and has the listed files.
func TestReport(t *testing.T) {
	server := loaded(t, "cluster.yaml")
	server.Load(t, "testdata/config.yaml")
	answer := func(ctx context.Context, command ...string) ([]byte, error) {
		if slices.Contains(command, "--json="+rest.PrintedVersion) {
			return scripted(t)(ctx, command...)
		}
		return []byte(strings.Join(command, " ") + "\n"), nil
	}
	out, err := runWith(t, server, answer, "report", "--file=-", "--controller=slurm")
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range server.Requests() {
		changes := !strings.HasPrefix(request, "GET ") && !strings.Contains(request, "/exec")
		if changes || strings.Contains(request, "secrets") {
			t.Errorf("%s", request)
		}
	}
	names := filesOf(t, strings.NewReader(out))
	for _, want := range []string{
		"README.txt", "doctor.json", "slurm/sdiag.txt", "objects/nodesets/slurm/gpu.yaml",
		"configmaps/slurm/slurm-config.yaml",
	} {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, "/"+want) }) {
			t.Errorf("%s is not among %q", want, names)
		}
	}
}

func filesOf(t *testing.T, archive io.Reader) []string {
	t.Helper()
	content, err := io.ReadAll(archive)
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for reader := tar.NewReader(compressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
}
