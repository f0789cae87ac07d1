//go:build slurm

package slurmnet

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/test/golden"
)

// TestMetricNames lists the metrics that slurmctld serves, with their paths and labels: rules and dashboards may use
// only those in the list.
func TestMetricNames(t *testing.T) {
	cluster := startVersion(t, "26.05", Options{Nodes: 1, Accounting: true})
	mustRun(t, cluster, "sbatch", "--wrap", "sleep 300")
	series := map[string]bool{}
	cluster.WaitFor(t, "the metrics of a job", func(ctx context.Context) error {
		for _, path := range []string{"jobs", "jobs-users-accts", "nodes", "partitions", "scheduler"} {
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
