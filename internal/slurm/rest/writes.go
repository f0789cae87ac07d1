package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// maxPath limits a hostlist in the path of a request. One in a body may have any length.
const maxPath = 4096

// UpdateNodes makes the same change to many Slurm nodes in one request.
func (c *Client) UpdateNodes(ctx context.Context, names []string, update slurm.NodeUpdate) error {
	if len(names) == 0 {
		return nil
	}
	expression, err := hostlist.Compress(names)
	if err != nil {
		return &slurm.Error{Kind: slurm.Rejected, Op: "update nodes", Err: err}
	}
	body := struct {
		Name     []string            `json:"name"`
		State    []slurm.TargetState `json:"state,omitempty"`
		Reason   string              `json:"reason,omitempty"`
		Comment  *string             `json:"comment,omitempty"`
		Features *[]string           `json:"features,omitempty"`
		Topology *string             `json:"topology_str,omitempty"`
	}{Name: []string{
		expression}, Reason: update.Reason, Comment: update.Comment, Features: update.Features, Topology: update.Topology}
	if update.State == slurm.ForcePowerDown { // it has a name of its own only since v0.0.45
		body.State = []slurm.TargetState{slurm.PowerDown, "POWERED_DOWN"}
	} else if update.State != "" {
		body.State = []slurm.TargetState{update.State}
	}
	call := call{
		name: "update-nodes", op: "update nodes " + shorten(expression), method: http.MethodPost, path: "nodes/",
		body: body, targets: len(names),
	}
	if update.Topology != nil {
		return c.doNewer(ctx, call, "set the topology of nodes")
	}
	_, err = c.do(ctx, call)
	return err
}

// DeleteNodes deletes node records, in one request unless the names are too long for a path.
func (c *Client) DeleteNodes(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	expression, err := hostlist.Compress(names)
	if err != nil {
		return &slurm.Error{Kind: slurm.Rejected, Op: "delete nodes", Err: err}
	}
	if len(expression) > maxPath && len(names) > 1 {
		half := len(names) / 2
		err := errors.Join(c.DeleteNodes(ctx, names[:half]), c.DeleteNodes(ctx, names[half:]))
		if err != nil {
			err = &slurm.Error{Kind: slurm.PartialEffect, Op: "delete nodes " + shorten(expression), Err: err}
		}
		return err
	}
	_, err = c.do(ctx, call{
		name: "delete-nodes", op: "delete nodes " + shorten(expression), method: http.MethodDelete,
		path: "node/" + url.PathEscape(expression), targets: len(names),
	})
	return err
}

// CreateReservation creates a reservation. It needs API v0.0.43.
func (c *Client) CreateReservation(ctx context.Context, reservation slurm.Reservation) error {
	type number struct {
		Set   bool  `json:"set"`
		Value int64 `json:"number"`
	}
	body := struct {
		Name      string   `json:"name"`
		StartTime number   `json:"start_time"`
		EndTime   number   `json:"end_time"`
		NodeList  []string `json:"node_list"`
		Users     []string `json:"users,omitempty"`
		Flags     []string `json:"flags,omitempty"`
	}{
		Name: reservation.Name, NodeList: []string{reservation.Nodes}, Users: reservation.Users,
		Flags:     reservation.Flags,
		StartTime: number{true, reservation.Start.Unix()}, EndTime: number{true, reservation.End.Unix()},
	}
	return c.doNewer(ctx, call{
		name: "create-reservation", op: "create reservation " + reservation.Name, method: http.MethodPost,
		path: "reservation",
		body: body,
	}, changeReservations)
}

// DeleteReservation deletes a reservation. It needs API v0.0.43.
func (c *Client) DeleteReservation(ctx context.Context, name string) error {
	return c.doNewer(ctx, call{
		name: "delete-reservation", op: "delete reservation " + name, method: http.MethodDelete,
		path: "reservation/" + url.PathEscape(name), targets: 1,
	}, changeReservations)
}

const changeReservations = "change reservations"

// doNewer makes a call that needs API v0.0.43. Older versions would ignore unknown members and report success.
func (c *Client) doNewer(ctx context.Context, call call, what string) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	api, err := c.api(ctx)
	if err != nil {
		return err
	}
	if api == "v0.0.42" {
		return &slurm.Error{
			Kind: slurm.Unsupported, Op: call.op, Err: fmt.Errorf("API v0.0.42 cannot %s: it needs Slurm 25.05", what),
		}
	}
	_, err = c.do(ctx, call)
	return err
}

// shorten keeps error messages readable.
func shorten(expression string) string {
	const maxShown = 80
	if len(expression) <= maxShown {
		return expression
	}
	return strings.ToValidUTF8(expression[:maxShown], "") + "…"
}
