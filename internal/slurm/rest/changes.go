package rest

import (
	"context"
	"errors"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

var _ slurm.ChangeTracker = (*Client)(nil)

// NodeChanges returns the Slurm nodes that have changed since a cursor. It fails if Options has no NodeChanges.
func (c *Client) NodeChanges(ctx context.Context, since string) (slurm.NodeChanges, error) {
	const call = "node-changes"
	if c.options.NodeChanges == nil {
		return slurm.NodeChanges{}, &slurm.Error{
			Kind: slurm.Unsupported, Op: call, Err: errors.New("slurmctld has no agent of the operator"),
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	start := time.Now()
	changes, err := c.options.NodeChanges(ctx, since)
	if err != nil {
		err = &slurm.Error{Kind: slurm.Failed, Op: call, Err: err}
	}
	c.observe(call, start, outcome{}, err)
	return changes, err
}
