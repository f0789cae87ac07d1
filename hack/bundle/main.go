// Command bundle writes a bundle for the Operator Lifecycle Manager (OLM): a ClusterServiceVersion, the CRDs and other
// manifests, their metadata, and a Dockerfile for the bundle's image.
//
// Everything comes from the operator's chart, the CRDs and the samples of the repository, so that an installation by
// OLM differs from one by Helm only where OLM does something itself: it creates the ServiceAccounts, roles and webhook
// configurations, and issues the webhook's certificate.
//
// Usage: bundle -chart dist/slurm-operator-0.1.0.tgz -out dist/bundle <repository>
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"helm.sh/helm/v3/pkg/chart/loader"
)

func main() {
	var (
		chart = flag.String("chart", "", "the operator's chart in a release: an archive or a directory")
		out   = flag.String("out", "", "directory of the bundle; what it has is removed")
	)
	flag.Parse()
	if *chart == "" || *out == "" || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*chart, *out, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(chartPath, out, repository string) error {
	operator, err := loader.Load(chartPath)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: build the release first, with make release", err)
	}
	if err != nil {
		return err
	}
	made, err := newBundle(operator, repository)
	if err != nil {
		return err
	}
	files, err := made.files()
	if err != nil {
		return err
	}
	return write(out, files)
}

// write writes files into a directory, from which everything else is removed.
func write(dir string, files map[string][]byte) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
