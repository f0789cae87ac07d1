//go:build cluster

package cluster_test

import (
	"context"
	"flag"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slurm-operator/slurm-operator/test/cluster"
	"github.com/slurm-operator/slurm-operator/test/cluster/audit"
	"github.com/slurm-operator/slurm-operator/test/cluster/controlplane"
)

// The devcluster program is also the init of the cluster's nodes.
var (
	program = flag.String("devcluster", "", "the devcluster program")
	cycles  = flag.Int("cycles", 2, "how often the cluster is started and stopped")
)

const nodes = 3

func TestUpAndDownLeaveNothingBehind(t *testing.T) {
	t.Cleanup(func() { down(t) })
	down(t)
	for cycle := range *cycles {
		started := time.Now()
		up(t)
		ready := time.Since(started)
		down(t)
		t.Logf("cycle %d: up in %.1f s, down in %.1f s", cycle+1, ready.Seconds(),
			time.Since(started.Add(ready)).Seconds())
		left, err := cluster.Leftovers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(left) != 0 {
			t.Fatalf("cycle %d left behind: %v", cycle+1, left)
		}
	}
}

func TestUpRemovesPartialCluster(t *testing.T) {
	t.Cleanup(func() { down(t) })
	made := up(t)
	// One node is gone, and the saved state and the pid files too.
	if err := made.Nodes[0].Off(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir, err := cluster.Dir()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/cluster.json", "/run"} {
		if err := os.RemoveAll(dir + name); err != nil {
			t.Fatal(err)
		}
	}
	up(t)
}

func TestFaults(t *testing.T) {
	t.Cleanup(func() { down(t) })
	made := up(t)
	node := made.Nodes[0]
	isReady := func(want bool) {
		t.Helper()
		started := time.Now()
		eventually(t, func(ctx context.Context) bool {
			unready, err := made.UnreadyNodes(ctx)
			return err == nil && slices.Contains(unready, node.Name) != want
		})
		t.Logf("ready=%t after %.1f s", want, time.Since(started).Seconds())
	}

	t.Run("a node without power is not ready until it has power again", func(t *testing.T) {
		must(t, node.Off(t.Context()))
		isReady(false)
		must(t, node.On())
		isReady(true)
	})
	t.Run("a disconnected node is not ready until it is reconnected", func(t *testing.T) {
		must(t, node.Wire.Cut(t.Context()))
		isReady(false)
		must(t, node.Wire.Heal(t.Context()))
		isReady(true)
	})
	t.Run("a node with a paused kubelet is not ready until it continues", func(t *testing.T) {
		must(t, made.Pause(node.Name+"/kubelet"))
		isReady(false)
		must(t, made.Continue(node.Name+"/kubelet"))
		isReady(true)
	})
	t.Run("a killed kubelet is restarted", func(t *testing.T) {
		must(t, made.Restart(t.Context(), node.Name+"/kubelet"))
		eventually(t, func(context.Context) bool { return made.Pause(node.Name+"/kubelet") == nil })
		must(t, made.Continue(node.Name+"/kubelet"))
		isReady(true)
	})
	t.Run("a delayed node answers late until the delay ends", func(t *testing.T) {
		const delay = 300 * time.Millisecond
		must(t, made.Delay(t.Context(), node, delay))
		// The first connection also waits for the address to be resolved.
		eventually(t,
			func(ctx context.Context) bool { _, err := roundTrip(ctx, node.Wire.Address()); return err == nil })
		if took, err := roundTrip(t.Context(), node.Wire.Address()); err != nil || took < 2*delay {
			t.Errorf("connecting took %s, %v; want at least %s", took, err, 2*delay)
		}
		must(t, made.Delay(t.Context(), node, 0))
		eventually(t, func(ctx context.Context) bool {
			took, err := roundTrip(ctx, node.Wire.Address())
			return err == nil && took < delay
		})
	})
	t.Run("the API server keeps its objects over a restart", func(t *testing.T) {
		before := uidOfDefaultNamespace(t, made)
		must(t, made.Restart(t.Context(), controlplane.APIServer))
		if after := uidOfDefaultNamespace(t, made); after != before {
			t.Errorf("the default namespace was %s and is %s", before, after)
		}
	})
	t.Run("a stopped etcd stalls writes until it continues", func(t *testing.T) {
		must(t, made.Pause(controlplane.Etcd))
		stalled, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := client(t, made).CoreV1().Namespaces().
			Create(stalled, namespace("stalled"), metav1.CreateOptions{}); err == nil {
			t.Error("a write succeeded while etcd was paused")
		}
		must(t, made.Continue(controlplane.Etcd))
		eventually(t, func(ctx context.Context) bool {
			_, err := client(t, made).CoreV1().Namespaces().Create(ctx, namespace("written"), metav1.CreateOptions{})
			return err == nil
		})
	})
	t.Run("the audit log has the user of a write", func(t *testing.T) {
		eventually(t, func(context.Context) bool {
			writes, err := audit.ReadFile(made.Plane.AuditLog(), time.Time{}, audit.Request.IsWrite)
			must(t, err)
			return slices.ContainsFunc(writes, func(r audit.Request) bool {
				return r.User == "admin" && r.Verb == "create" && r.Resource == "namespaces" && r.Name == "written" &&
					r.Code == 201
			})
		})
	})
}

func up(t *testing.T) *cluster.Cluster {
	t.Helper()
	made, err := cluster.Up(t.Context(), t.Output(), cluster.Options{Nodes: nodes, Program: *program})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func down(t *testing.T) {
	t.Helper()
	if err := cluster.Down(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func client(t *testing.T, made *cluster.Cluster) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", made.Plane.Kubeconfig())
	must(t, err)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func uidOfDefaultNamespace(t *testing.T, made *cluster.Cluster) string {
	t.Helper()
	found, err := client(t, made).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	must(t, err)
	return string(found.UID)
}

// roundTrip connects to the kubelet of a node.
func roundTrip(ctx context.Context, address string) (time.Duration, error) {
	started := time.Now()
	conn, err := (&net.Dialer{Timeout: time.Minute}).DialContext(ctx, "tcp", net.JoinHostPort(address, "10250"))
	if err != nil {
		return 0, err
	}
	return time.Since(started), conn.Close()
}

func eventually(t *testing.T, condition func(ctx context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 10*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			return condition(ctx), nil
		})
	must(t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
