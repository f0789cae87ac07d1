//go:build slurm

package slurmnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/repo"
	"github.com/slurm-operator/slurm-operator/test/golden"
	"github.com/slurm-operator/slurm-operator/test/panels"
	"github.com/slurm-operator/slurm-operator/test/prometheus"
)

// metricPaths are the paths of slurmctld's metrics, under /metrics.
var metricPaths = []string{"jobs", "jobs-users-accts", "nodes", "partitions", "scheduler"}

// TestMetricNames lists the metrics that slurmctld serves, with their paths and labels: rules and dashboards may use
// only those in the list.
func TestMetricNames(t *testing.T) {
	cluster := startVersion(t, "26.05", Options{Nodes: 1, Accounting: true})
	mustRun(t, cluster, "sbatch", "--wrap", "sleep 300")
	series := map[string]bool{}
	cluster.WaitFor(t, "the metrics of a job", func(ctx context.Context) error {
		for _, path := range metricPaths {
			if err := cluster.listMetrics(ctx, path, series); err != nil {
				return err
			}
		}
		if !series["jobs-users-accts slurm_user_jobs{username}"] {
			return errors.New("there are no metrics of users")
		}
		return nil
	})
	golden.Compare(t, "metrics-26.05.txt", strings.Join(slices.Sorted(maps.Keys(series)), "\n")+"\n")
}

// TestPrometheusScrapesSlurmctld checks that a real Prometheus understands every path, can evaluate the recording rules
// about nodes, and has data for the panels about slurmctld.
func TestPrometheusScrapesSlurmctld(t *testing.T) {
	cluster := startVersion(t, "26.05", Options{Nodes: 1})
	mustRun(t, cluster, "sbatch", "--wrap", "sleep 300")
	var targets []prometheus.Target
	for _, path := range metricPaths {
		targets = append(targets, prometheus.Target{
			Job: path, URL: "http://" + cluster.Slurmctld.address + ":6817/metrics/" + path,
			Labels: map[string]string{"controller_namespace": "hpc", "controller": "slurm"},
		})
	}
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	files := filepath.Join(root, "charts", "slurm-operator", "files", "monitoring")
	rules, err := os.ReadFile(filepath.Join(files, "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	server := prometheus.Start(t, prometheus.Options{Targets: targets, Rules: rules})
	for query, want := range map[string]float64{
		"sum(up)": float64(len(metricPaths)), "sum(slurm_jobs_running)": 1, "count(slurm_user_jobs_running)": 1,
		"count(slurm_server_thread_cnt)": 1, "count(controller:slurm_node_cpus:sum)": 1,
	} {
		cluster.WaitFor(t, query, func(ctx context.Context) error {
			samples, err := server.Query(ctx, query)
			if err == nil && (len(samples) != 1 || samples[0].Value != want) {
				err = fmt.Errorf("%s is %v, want %v", query, samples, want)
			}
			return err
		})
	}
	dashboards := filepath.Join(files, "dashboards")
	cluster.WaitFor(t, "data for every panel about slurmctld", func(ctx context.Context) error {
		drawer := panels.Drawer{Source: server, From: began, To: time.Now(), Variables: map[string]string{
			"__rate_interval": "1m", "namespace": "hpc", "controller": "slurm",
		}}
		var faults []error
		for _, name := range []string{"scheduler.json", "accounting.json"} {
			gaps, err := drawer.DrawFile(ctx, filepath.Join(dashboards, name), t.TempDir())
			faults = append(faults, err)
			for _, gap := range gaps {
				if !strings.Contains(gap.Query, "slurm_operator_") {
					faults = append(faults, fmt.Errorf("%s: the panel %q has no data for %s", name, gap.Panel, gap.Query))
				}
			}
		}
		return errors.Join(faults...)
	})
}

// listMetrics adds the metrics of a path, with the names of their labels.
func (c *Cluster) listMetrics(ctx context.Context, path string, series map[string]bool) error {
	url := "http://" + c.Slurmctld.address + ":6817/metrics/" + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		name, labels, _ := strings.Cut(line[:strings.LastIndexByte(strings.TrimSpace(line), ' ')], "{")
		var names []string
		for label := range strings.SplitSeq(strings.TrimSuffix(labels, "}"), ",") {
			if key, _, found := strings.Cut(label, "="); found {
				names = append(names, key)
			}
		}
		series[path+" "+name+"{"+strings.Join(names, ",")+"}"] = true
	}
	return nil
}
