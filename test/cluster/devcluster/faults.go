package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/slurm-operator/slurm-operator/test/cluster"
	"github.com/slurm-operator/slurm-operator/test/cluster/audit"
	"github.com/slurm-operator/slurm-operator/test/cluster/network"
)

func power(ctx context.Context, arguments []string) error {
	if len(arguments) < 2 {
		return errUsage
	}
	found, err := cluster.Open()
	if err != nil {
		return err
	}
	node, err := found.Node(arguments[1])
	if err != nil {
		return err
	}
	switch arguments[0] {
	case "on":
		return node.On()
	case "off":
		return node.Off(ctx)
	case "cut":
		return node.Wire.Cut(ctx)
	case "heal":
		return node.Wire.Heal(ctx)
	case "delay":
		if len(arguments) < 3 {
			return errUsage
		}
		delay, err := time.ParseDuration(arguments[2])
		if err != nil {
			return err
		}
		return found.Delay(ctx, node, delay)
	}
	return errUsage
}

func daemon(ctx context.Context, arguments []string) error {
	if len(arguments) != 2 {
		return errUsage
	}
	found, err := cluster.Open()
	if err != nil {
		return err
	}
	switch arguments[0] {
	case "stop":
		return found.Pause(arguments[1])
	case "continue":
		return found.Continue(arguments[1])
	case "restart":
		return found.Restart(ctx, arguments[1])
	}
	return errUsage
}

func policies(ctx context.Context, arguments []string) error {
	return turn(arguments,
		func(found *cluster.Cluster) error { return found.EnforcePolicies(ctx, os.Stderr) },
		func(found *cluster.Cluster) error { return found.EndEnforcement(ctx) })
}

// turn turns a part of the cluster on or off.
func turn(arguments []string, on, off func(*cluster.Cluster) error) error {
	if len(arguments) != 1 {
		return errUsage
	}
	found, err := cluster.Open()
	if err != nil {
		return err
	}
	switch arguments[0] {
	case "on":
		return on(found)
	case "off":
		return off(found)
	}
	return errUsage
}

func auditLog(_ context.Context, arguments []string) error {
	found, err := cluster.Open()
	if err != nil {
		return err
	}
	var since time.Time
	if len(arguments) > 0 {
		last, err := time.ParseDuration(arguments[0])
		if err != nil {
			return err
		}
		since = time.Now().Add(-last)
	}
	requests, err := audit.ReadFile(found.Plane.AuditLog(), since, audit.Request.IsWrite)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "WRITES\tVERB\tRESOURCE\tUSER")
	for _, count := range audit.Summarize(requests) {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", count.Requests, count.Verb, count.Resource, count.User)
	}
	return table.Flush()
}

// relay runs the daemon that implements a delay.
func relay(ctx context.Context, arguments []string) error {
	number, err := strconv.Atoi(arguments[0])
	if err != nil {
		return err
	}
	delay, err := time.ParseDuration(arguments[1])
	if err != nil {
		return err
	}
	return network.Relay(ctx, network.WireOf(number), delay)
}
