package cluster

import (
	"context"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// machineName is the name of the node that is a virtual machine.
const machineName = "vm-1"

// StartMachine adds the machine to the cluster, and returns when it is ready and DNS answers there. Its node has the
// taint node.MachineTaint.
func (c *Cluster) StartMachine(ctx context.Context, log io.Writer) error {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := c.Machine.On(ctx); err != nil {
		return fmt.Errorf("starting machine %s: %w", machineName, err)
	}
	fmt.Fprintf(log, "%s runs after %.1f s\n", machineName, time.Since(started).Seconds())
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		ready, err := c.readyNodes(ctx)
		return err == nil && ready[machineName], nil
	})
	if err != nil {
		return fmt.Errorf("waiting for node %s to be ready: %w\n%s", machineName, err, c.machineLogs(ctx))
	}
	fmt.Fprintf(log, "%s is ready after %.1f s\n", machineName, time.Since(started).Seconds())
	var last error
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		_, last = c.Machine.Run(ctx, "getent ahostsv4 kubernetes.default.svc.cluster.local.")
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for DNS on %s: %w: %w\n%s", machineName, err, last, c.machineLogs(ctx))
	}
	fmt.Fprintf(log, "DNS answers on %s after %.1f s\n", machineName, time.Since(started).Seconds())
	return nil
}

// StopMachine removes the machine from the cluster, in whatever state it is.
func (c *Cluster) StopMachine(ctx context.Context) error {
	if err := c.Machine.Off(ctx); err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	err = client.CoreV1().Nodes().Delete(ctx, machineName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing node %s: %w", machineName, err)
	}
	return nil
}

// machineLogs returns the last lines that the machine's daemons have logged.
func (c *Cluster) machineLogs(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	logs, err := c.Machine.Run(ctx, "tail -n 20 /var/log/containerd.log /var/log/kubelet.log /var/log/kube-proxy.log")
	if err != nil {
		return err.Error()
	}
	return logs
}
