package rest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// maxCensus bounds the answer to a census: some kilobytes for each partition.
const maxCensus = 16 << 20

// Census counts the nodes of each partition by state, as slurmctld itself tells in its metrics from 26.05 on, if they are
// switched on. They are cheap, and show what slurmctld does to nodes by itself. It fails when Options has no Metrics.
func (c *Client) Census(ctx context.Context) (map[string]int64, error) {
	if c.options.Metrics == "" {
		return nil, &slurm.Error{Kind: slurm.Unsupported, Op: "census", Err: errors.New("no URL of slurmctld's metrics is known")}
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	start := time.Now()
	census, received, err := c.census(ctx)
	c.observe("census", start, outcome{bytes: received}, err)
	return census, err
}

func (c *Client) census(ctx context.Context) (census map[string]int64, received int64, err error) {
	failure := &slurm.Error{Op: "census"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.options.Metrics, "/")+"/metrics/partitions", nil)
	if err != nil {
		failure.Kind, failure.Err = slurm.Rejected, err
		return nil, 0, failure
	}
	response, err := c.transport.RoundTrip(request) // without a token: slurmctld wants none here
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
	census, err = parseCensus(bufio.NewScanner(body))
	if err != nil {
		failure.Kind, failure.Err = readKind(ctx, err), err
		return nil, maxCensus - body.left, failure
	}
	return census, maxCensus - body.left, nil
}

// parseCensus reads lines such as slurm_partition_nodes_drain{partition="all"} 1.
func parseCensus(lines *bufio.Scanner) (map[string]int64, error) {
	census := map[string]int64{}
	for lines.Scan() {
		name, value, found := strings.Cut(lines.Text(), " ")
		if !found || !strings.HasPrefix(name, "slurm_partition_nodes_") || strings.Contains(name, "_mem_free") {
			continue // free memory changes with every ping
		}
		count, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("%.40q is not a count", value)
		}
		census[name] = int64(count)
	}
	return census, lines.Err()
}
