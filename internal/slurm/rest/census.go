package rest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// maxCensus limits the size of a census: some kilobytes per partition.
const maxCensus = 16 << 20

// Census counts the Slurm nodes of each partition by state, from slurmctld's metrics, which 25.11 and later have if
// enabled. They are cheap, and show changes that slurmctld makes by itself. It fails if Options has no Metrics.
func (c *Client) Census(ctx context.Context) (map[string]int64, error) {
	return c.measure(ctx, "census", "partitions", func(name string) bool {
		// free memory changes with every ping
		return strings.HasPrefix(name, "slurm_partition_nodes_") && !strings.Contains(name, "_mem_free")
	})
}

// JobCensus counts the jobs by state, from the same source. It costs slurmctld milliseconds, whatever the number of
// jobs.
func (c *Client) JobCensus(ctx context.Context) (slurm.JobCensus, error) {
	counts, err := c.measure(ctx, "job-census", "jobs", func(name string) bool {
		return name == "slurm_jobs" || strings.HasPrefix(name, "slurm_jobs_")
	})
	if err != nil {
		return slurm.JobCensus{}, err
	}
	for _, name := range slices.Concat([]string{"", "_completing"}, baseStates, hiddenStates) {
		if _, ok := counts["slurm_jobs"+name]; !ok {
			return slurm.JobCensus{}, malformed("job-census", fmt.Errorf("slurm_jobs%s is missing", name))
		}
	}
	hidden := counts["slurm_jobs"] // jobs in an unknown state are hidden too
	for _, state := range baseStates {
		hidden -= counts["slurm_jobs"+state]
	}
	for _, state := range hiddenStates {
		hidden += counts["slurm_jobs"+state]
	}
	return slurm.JobCensus{
		Jobs: int(counts["slurm_jobs"]), Pending: int(counts["slurm_jobs_pending"]),
		Running:    int(counts["slurm_jobs_running"]),
		Completing: int(counts["slurm_jobs_completing"]), Hidden: int(hidden),
	}, nil
}

// baseStates are the metrics of the base states: each job is in exactly one of them.
var baseStates = []string{
	"_pending", "_running", "_suspended", "_completed", "_cancelled", "_failed", "_timeout", "_node_failed",
	"_preempted", "_bootfail",
	"_deadline", "_outofmemory",
}

// hiddenStates are the metrics of jobs that may hold nodes without showing in their records.
var hiddenStates = []string{
	"_suspended", "_stageout", "_resizing", "_signaling", "_expediting",
}

// measure reads the wanted metrics of slurmctld.
func (c *Client) measure(ctx context.Context, call, path string, wanted func(name string) bool) (map[string]int64,
	error) {
	if c.options.Metrics == "" {
		return nil, &slurm.Error{
			Kind: slurm.Unsupported, Op: call, Err: errors.New("no URL of slurmctld's metrics is known"),
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	start := time.Now()
	counts, received, err := c.metrics(ctx, call, path, wanted)
	c.observe(call, start, outcome{bytes: received}, err)
	return counts, err
}

func (c *Client) metrics(
	ctx context.Context, call, path string, wanted func(name string) bool,
) (counts map[string]int64, received int64, err error) {
	failure := &slurm.Error{Op: call}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		strings.TrimSuffix(c.options.Metrics, "/")+"/metrics/"+path, nil)
	if err != nil {
		failure.Kind, failure.Err = slurm.Rejected, err
		return nil, 0, failure
	}
	response, err := c.transport.RoundTrip(request) // without a token: slurmctld does not need one here
	if err != nil {
		failure.Kind, failure.Err = transportKind(ctx, err), err
		return nil, 0, failure
	}
	defer response.Body.Close()
	if failure.Status = response.StatusCode; failure.Status != http.StatusOK {
		failure.Kind = slurm.Failed
		return nil, 0, failure
	}
	body := &boundedReader{reader: response.Body, left: maxCensus}
	counts, err = parseCensus(bufio.NewScanner(body), wanted)
	if err != nil {
		failure.Kind, failure.Err = readKind(ctx, err), err
		return nil, maxCensus - body.left, failure
	}
	return counts, maxCensus - body.left, nil
}

// parseCensus parses lines such as slurm_partition_nodes_drain{partition="all"} 1.
func parseCensus(lines *bufio.Scanner, wanted func(name string) bool) (map[string]int64, error) {
	census := map[string]int64{}
	for lines.Scan() {
		name, value, found := strings.Cut(lines.Text(), " ")
		if !found || !wanted(name) {
			continue
		}
		count, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("%.40q is not a count", value)
		}
		census[name] = int64(count)
	}
	return census, lines.Err()
}
