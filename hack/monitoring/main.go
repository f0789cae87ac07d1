// Command monitoring writes the alert rules and the Grafana dashboards into the chart of the operator.
//
// Usage: monitoring <repository>
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/slurm-operator/slurm-operator/hack/monitoring/dashboards"
	"github.com/slurm-operator/slurm-operator/hack/monitoring/rules"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: monitoring <repository>")
		os.Exit(2)
	}
	if err := write(filepath.Join(os.Args[1], "charts", "slurm-operator", "files", "monitoring")); err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}

// write writes all files into a directory, from which everything else is removed.
func write(directory string) error {
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(directory, "dashboards"), 0o755); err != nil {
		return err
	}
	files, err := dashboards.Files()
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(directory, "dashboards", name), content, 0o644); err != nil {
			return err
		}
	}
	file, err := rules.File()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, "rules.yaml"), file, 0o644)
}
