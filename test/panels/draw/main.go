// Command draw draws the dashboards of the operator's chart with the data of a Prometheus, one SVG for each.
//
// Usage: draw [-prometheus URL] [-since duration] [-set variable=value]... <directory for pictures> <dashboard.json>...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/test/panels"
	"github.com/slurm-operator/slurm-operator/test/prometheus"
)

func main() {
	address := flag.String("prometheus", "http://127.0.0.1:9090", "URL of Prometheus")
	since := flag.Duration("since", 6*time.Hour, "length of the period of time that ends now")
	variables := map[string]string{
		"__rate_interval": "5m", "namespace": "slurm", "controller": "slurm", "nodeset": ".*",
	}
	flag.Func("set", "variable=value, such as namespace=hpc", func(text string) error {
		name, value, found := strings.Cut(text, "=")
		if !found {
			return errors.New("it has no =")
		}
		variables[name] = value
		return nil
	})
	flag.Parse()
	if flag.NArg() < 2 {
		flag.Usage()
		os.Exit(2)
	}
	now := time.Now()
	drawer := panels.Drawer{
		Source: prometheus.Connect(*address), From: now.Add(-*since), To: now, Variables: variables,
	}
	if err := draw(context.Background(), drawer, flag.Arg(0), flag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "draw:", err)
		os.Exit(1)
	}
}

// draw writes the pictures, and prints which queries have no data.
func draw(ctx context.Context, drawer panels.Drawer, directory string, files []string) error {
	for _, file := range files {
		gaps, err := drawer.DrawFile(ctx, file, directory)
		if err != nil {
			return err
		}
		for _, gap := range gaps {
			fmt.Printf("%s: %s has no data: %s\n", filepath.Base(file), gap.Panel, gap.Query)
		}
	}
	return nil
}
