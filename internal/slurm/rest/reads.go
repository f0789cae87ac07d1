package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// release pings slurmrestd in an API version, which need not be the negotiated one, and returns its release.
func (c *Client) release(ctx context.Context, api string) (slurm.Version, error) {
	var meta wireMeta
	_, err := c.doIn(ctx, api, call{
		name: "ping", op: "ping", method: http.MethodGet, path: "ping/", required: "pings",
		fields: fields{"meta": into(&meta)},
	})
	return meta.version(), err
}

// Diag reads slurmctld's statistics.
func (c *Client) Diag(ctx context.Context) (slurm.Diag, error) {
	var answer wireDiag
	_, err := c.do(ctx, call{
		name: "diag", op: "get statistics", method: http.MethodGet, path: "diag/", required: "statistics",
		fields: fields{"statistics": into(&answer)},
	})
	if err != nil {
		return slurm.Diag{}, err
	}
	if !answer.ReqTime.set || !answer.ReqTimeStart.set {
		return slurm.Diag{}, malformed("get statistics", errors.New("the statistics have no timestamp"))
	}
	return answer.diag(), nil
}

// Nodes lists all Slurm nodes.
func (c *Client) Nodes(ctx context.Context, since slurm.Cursor) (slurm.NodeList, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	list, err := c.nodes(ctx, since)
	// 24.11 returns an unspecified error if nodes have changed and partitions have not, because it queries slurmctld
	// for both. After any failure of slurmrestd to report changes, reading everything is correct.
	if since != 0 && errors.Is(err, slurm.Failed) {
		return c.nodes(ctx, 0)
	}
	return list, err
}

func (c *Client) nodes(ctx context.Context, since slurm.Cursor) (slurm.NodeList, error) {
	var list slurm.NodeList
	var lastUpdate number
	result, err := c.do(ctx, call{
		name: "nodes", op: "list nodes", method: http.MethodGet, path: "nodes/", query: changesSince(since),
		required: "nodes",
		fields:   fields{"nodes": eachNode(&list.Nodes), "last_update": into(&lastUpdate)},
	})
	switch {
	case err != nil:
		return slurm.NodeList{}, err
	case result.unchanged:
		return slurm.NodeList{Unchanged: true, Cursor: since, Bytes: result.bytes}, nil
	case lastUpdate.value <= 0:
		return slurm.NodeList{}, malformed("list nodes", errors.New("the list has no timestamp"))
	}
	list.Cursor, list.Bytes = slurm.Cursor(lastUpdate.value), result.bytes
	return list, nil
}

// Node reads one Slurm node.
func (c *Client) Node(ctx context.Context, name string) (slurm.Node, error) {
	op := "get node " + name
	var nodes []slurm.Node
	_, err := c.do(ctx, call{
		name: "node", op: op, method: http.MethodGet, path: "node/" + url.PathEscape(name), required: "nodes",
		fields: fields{"nodes": eachNode(&nodes)},
	})
	if err != nil {
		return slurm.Node{}, err
	}
	if len(nodes) != 1 || nodes[0].Name != name {
		return slurm.Node{}, malformed(op, fmt.Errorf("the answer has %d nodes, or another one", len(nodes)))
	}
	return nodes[0], nil
}

// Jobs lists all jobs.
func (c *Client) Jobs(ctx context.Context, since slurm.Cursor) (slurm.JobList, error) {
	var list slurm.JobList
	var lastUpdate number
	result, err := c.do(ctx, call{
		name: "jobs", op: "list jobs", method: http.MethodGet, path: "jobs/", query: changesSince(since),
		required: "jobs",
		fields:   fields{"jobs": eachJob(&list.Jobs), "last_update": into(&lastUpdate)},
	})
	switch {
	case err != nil:
		return slurm.JobList{}, err
	// Jobs report that nothing has changed in their own way: an empty list without a time.
	case result.unchanged, since != 0 && len(list.Jobs) == 0 && lastUpdate.set && lastUpdate.value == 0:
		return slurm.JobList{Unchanged: true, Cursor: since, Bytes: result.bytes}, nil
	case lastUpdate.value <= 0:
		return slurm.JobList{}, malformed("list jobs", errors.New("the list has no timestamp"))
	}
	list.Cursor, list.Bytes = slurm.Cursor(lastUpdate.value), result.bytes
	return list, nil
}

// EachJob calls each for every job.
func (c *Client) EachJob(ctx context.Context, each func(*slurm.Job) error) error {
	const op = "count jobs"
	var lastUpdate number
	_, err := c.do(ctx, call{
		name: "count-jobs", op: op, method: http.MethodGet, path: "jobs/", required: "jobs", noTimeout: true,
		fields: fields{"jobs": everyJob(each), "last_update": into(&lastUpdate)},
	})
	if err == nil && lastUpdate.value <= 0 {
		err = malformed(op, errors.New("the list has no timestamp"))
	}
	return err
}

// Job reads one job. The number of an array or of a heterogeneous job is also that of one of its jobs, and Slurm
// returns all of them.
func (c *Client) Job(ctx context.Context, id int64) (slurm.Job, error) {
	op := "get job " + strconv.FormatInt(id, 10)
	var found slurm.Job
	keep := func(job *slurm.Job) error {
		if job.ID == id {
			found = *job
		}
		return nil
	}
	_, err := c.do(ctx, call{
		name: "job", op: op, method: http.MethodGet, path: "job/" + strconv.FormatInt(id, 10), required: "jobs",
		fields: fields{"jobs": everyJob(keep)},
	})
	if err != nil {
		return slurm.Job{}, err
	}
	if found.ID == 0 {
		return slurm.Job{}, malformed(op, errors.New("it is not in the answer"))
	}
	return found, nil
}

// JobStates calls each with the state of every job.
func (c *Client) JobStates(ctx context.Context, each func(slurm.JobState) error) (received int64, err error) {
	result, err := c.do(ctx, call{
		name: "job-states", op: "list job states", method: http.MethodGet, path: "jobs/state/", required: "jobs",
		fields: fields{"jobs": eachState(each)},
	})
	return result.bytes, err
}

// Reservations lists all reservations.
func (c *Client) Reservations(ctx context.Context) ([]slurm.Reservation, error) {
	var reservations []slurm.Reservation
	keep := func(wire *wireReservation) error {
		if wire.Name == "" {
			return errors.New("a reservation has no name")
		}
		reservations = append(reservations, wire.reservation())
		return nil
	}
	_, err := c.do(ctx, call{
		name: "reservations", op: "list reservations", method: http.MethodGet, path: "reservations/",
		required: "reservations",
		fields:   fields{"reservations": eachOf(keep)},
	})
	if err != nil {
		return nil, err
	}
	return reservations, nil
}

// changesSince returns the query for changes only.
func changesSince(since slurm.Cursor) url.Values {
	if since == 0 {
		return nil
	}
	return url.Values{"update_time": {strconv.FormatInt(int64(since), 10)}}
}

// malformed returns the error of an incomplete answer.
func malformed(op string, err error) error {
	return &slurm.Error{Kind: slurm.Malformed, Op: op, Status: http.StatusOK, Err: err}
}
