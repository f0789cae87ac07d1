package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slurm-operator/slurm-operator/test/cluster/network"
	"github.com/slurm-operator/slurm-operator/test/cluster/node"
)

const (
	readyTimeout = 10 * time.Minute
	pollInterval = 100 * time.Millisecond
)

// waitReady waits until the control plane answers, all nodes are ready and DNS answers on each of them.
func (c *Cluster) waitReady(ctx context.Context, log io.Writer) error {
	started := time.Now()
	if err := c.Plane.WaitReady(ctx); err != nil {
		return err
	}
	var unready []string
	err := wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		unready, err = c.UnreadyNodes(ctx)
		return err == nil && len(unready) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for nodes %v to be ready: %w", unready, err)
	}
	fmt.Fprintf(log, "%d nodes ready after %.1f s\n", len(c.Nodes), time.Since(started).Seconds())
	for _, node := range c.Nodes {
		if err := waitForDNS(ctx, node); err != nil {
			return err
		}
	}
	fmt.Fprintf(log, "DNS answers after %.1f s\n", time.Since(started).Seconds())
	return nil
}

// UnreadyNodes lists the nodes that have not registered or that are not ready. The machine is not one of them.
func (c *Cluster) UnreadyNodes(ctx context.Context) ([]string, error) {
	ready, err := c.readyNodes(ctx)
	if err != nil {
		return nil, err
	}
	var unready []string
	for _, node := range c.Nodes {
		if !ready[node.Name] {
			unready = append(unready, node.Name)
		}
	}
	return unready, nil
}

// readyNodes returns whether each registered node is ready.
func (c *Cluster) readyNodes(ctx context.Context) (map[string]bool, error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	ready := map[string]bool{}
	for _, node := range list.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				ready[node.Name] = condition.Status == corev1.ConditionTrue
			}
		}
	}
	return ready, nil
}

func (c *Cluster) client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Plane.Kubeconfig())
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// waitForDNS resolves the API server's name through the DNS Service, from the node.
func waitForDNS(ctx context.Context, node node.Node) error {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, transport, _ string) (net.Conn, error) {
		return node.Wire.Dial(ctx, transport, net.JoinHostPort(network.DNSAddress, "53"))
	}}
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, last = resolver.LookupHost(ctx, "kubernetes.default.svc.cluster.local.")
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for DNS on %s: %w: %w", node.Name, err, last)
	}
	return nil
}
