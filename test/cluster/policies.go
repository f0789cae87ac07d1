package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
	"github.com/slurm-operator/slurm-operator/test/cluster/node"
	"github.com/slurm-operator/slurm-operator/test/cluster/process"
)

// policyQueue is the number of the queue with packets for the program that enforces policies.
const policyQueue = 100

// EnforcePolicies makes all nodes enforce NetworkPolicies on new connections of pods, which they do not by default.
// Connections that exist stay open.
func (c *Cluster) EnforcePolicies(ctx context.Context, log io.Writer) error {
	dir, err := binaries.Policies.Build(ctx, log)
	if err != nil {
		return err
	}
	program, err := binaries.Find([]string{dir}, "netpol")
	if err != nil {
		return err
	}
	for _, node := range c.Nodes {
		if err := c.enforcePoliciesOn(ctx, node, program); err != nil {
			return fmt.Errorf("enforcing policies on %s: %w", node.Name, err)
		}
	}
	return nil
}

// enforcePoliciesOn queues packets when the program is ready: until then the kernel would drop them all.
func (c *Cluster) enforcePoliciesOn(ctx context.Context, node node.Node, program string) error {
	name := policyProcess(node)
	if err := c.Plane.Processes.Start(process.Spec{
		Name: name, Path: "nsenter", Args: []string{
			"--net=" + node.Wire.NamespaceFile(), "--", program, "-kubeconfig=" + c.Plane.Kubeconfig(),
			"-node=" + node.Name, "-queue=" + strconv.Itoa(policyQueue),
		},
	}); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(context.Context) (bool, error) {
		if _, err := c.Plane.Processes.Pid(name); err != nil {
			return false, err
		}
		return node.Wire.HasReader(policyQueue)
	})
	if err != nil {
		return err
	}
	return node.Wire.Queue(ctx, policyQueue)
}

// EndEnforcement undoes EnforcePolicies. It does nothing if no policies are enforced.
func (c *Cluster) EndEnforcement(ctx context.Context) error {
	var faults []error
	for _, node := range c.Nodes {
		// First the queue: without its reader, nothing would be forwarded.
		faults = append(faults, node.Wire.EndQueue(ctx), c.Plane.Processes.Stop(ctx, policyProcess(node), 5*time.Second))
	}
	return errors.Join(faults...)
}

// policyProcess returns the name of the process that enforces policies on a node, and of its log.
func policyProcess(node node.Node) string { return node.Name + "-netpol" }
