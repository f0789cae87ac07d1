// Package simulated runs large simulated clusters: a real control plane on this computer with nodes that kwok
// simulates. The real API server, controllers and scheduler create, schedule and delete the pods; only the containers
// are simulated: a pod is Ready as soon as it has a node.
//
// Such a cluster measures the cost of a controller: how long it takes to create thousands of pods (Pods), how often it
// writes (Writes), and what the control plane uses (Usage).
//
// There is one simulated cluster on a computer at a time, in one directory. A second Start waits until the first
// cluster is gone, and every Start first removes what a killed test has left.
package simulated

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
	"github.com/slurm-operator/slurm-operator/hack/cache"
	"github.com/slurm-operator/slurm-operator/test/cluster/controlplane"
	"github.com/slurm-operator/slurm-operator/test/cluster/pki"
	"github.com/slurm-operator/slurm-operator/test/cluster/process"
)

// Kwok is the name of the daemon that simulates the nodes, and its user name.
const Kwok = "kwok"

const (
	startTimeout = 10 * time.Minute
	stopTimeout  = 10 * time.Minute
)

//go:embed kwok.yaml
var kwokConfiguration []byte

// Options describe the size of a cluster.
type Options struct {
	Nodes int
	// PodsPerNode is the pod capacity of a node; the default is 250, the most that Kubernetes is designed for.
	PodsPerNode int
}

// Cluster is a running simulated cluster.
type Cluster struct {
	Plane controlplane.Plane
	// Config and Kubeconfig are the administrator's. Config has no client-side rate limit.
	Config     *rest.Config
	Kubeconfig string
	// Client is a client with that Config.
	Client kubernetes.Interface

	authority *pki.Authority
}

// Start starts a cluster that is stopped at the end of the test, and returns when its nodes are ready for pods in the
// default namespace.
func Start(t *testing.T, options Options) *Cluster {
	t.Helper()
	group, err := processes()
	must(t, "finding the cluster's directory", err)
	dirs, err := binaries.BuildAll(t.Context(), t.Output(), binaries.ControlPlane, binaries.Controllers, binaries.Kwok)
	must(t, "building the daemons", err)
	unlock, err := cache.Lock(group.Dir + ".lock")
	must(t, "waiting for other simulated clusters to stop", err)
	t.Cleanup(unlock)
	must(t, "removing leftovers", sweep(t.Context(), group, ""))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the logs of the cluster's daemons are in %s", filepath.Dir(group.LogFile(Kwok)))
		}
		must(t, "stopping the cluster", sweep(context.WithoutCancel(t.Context()), group, "logs"))
	})

	cluster := &Cluster{Plane: controlplane.Plane{
		Processes: group,
		Binaries:  dirs,
		Address:   "127.0.0.1",
		// Addresses of the loopback interface, so that a test can answer for a Service without a network.
		ServiceCIDR:    "127.96.0.0/16",
		ServiceAddress: "127.96.0.1",
		PodCIDR:        "10.128.0.0/9",
		// One kwok renews the leases of all nodes, and is late when a measurement keeps the computer busy.
		NodeGracePeriod: 5 * time.Minute,
	}}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	must(t, "starting the cluster", cluster.start(ctx))
	must(t, "adding nodes", cluster.addNodes(ctx, options))
	return cluster
}

// processes returns the daemons of the simulated cluster of this computer, with the directory of all its files.
func processes() (process.Group, error) {
	root, err := cache.Dir()
	return process.Group{Dir: filepath.Join(root, "simulated")}, err
}

func (c *Cluster) start(ctx context.Context) (err error) {
	if c.authority, err = c.Plane.Start(ctx); err != nil {
		return err
	}
	c.Kubeconfig = c.Plane.Kubeconfig()
	if c.Config, err = unthrottled(c.Kubeconfig); err != nil {
		return err
	}
	compact := rest.CopyConfig(c.Config)
	compact.ContentType = runtime.ContentTypeProtobuf
	if c.Client, err = kubernetes.NewForConfig(compact); err != nil {
		return err
	}
	return c.startKwok()
}

func (c *Cluster) startKwok() error {
	path, err := binaries.Find(c.Plane.Binaries, Kwok)
	if err != nil {
		return err
	}
	kubeconfig, err := c.issue(pki.Subject{CommonName: Kwok, Organization: "system:masters"})
	if err != nil {
		return err
	}
	configuration := filepath.Join(c.Plane.Processes.Dir, "kwok.yaml")
	if err := os.WriteFile(configuration, kwokConfiguration, 0o644); err != nil {
		return err
	}
	return c.Plane.Processes.Start(process.Spec{Name: Kwok, Path: path, Args: []string{
		"--config=" + configuration, "--kubeconfig=" + kubeconfig, "--v=WARN",
	}})
}

// ConfigFor returns the configuration of a client with the KubeconfigFor a user, without a client-side rate limit.
func (c *Cluster) ConfigFor(t *testing.T, user string) *rest.Config {
	t.Helper()
	config, err := unthrottled(c.KubeconfigFor(t, user))
	must(t, "reading the kubeconfig of "+user, err)
	return config
}

// KubeconfigFor returns the path of a kubeconfig with all permissions for a user name, by which Writes distinguishes
// its client from others. The API server gives it the priority of a workload's service account, because administrators
// are exempt from priority and fairness.
func (c *Cluster) KubeconfigFor(t *testing.T, user string) string {
	t.Helper()
	_, err := c.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	must(t, "granting permissions to "+user, err)
	kubeconfig, err := c.issue(pki.Subject{CommonName: user, Organization: "system:serviceaccounts"})
	must(t, "issuing a certificate for "+user, err)
	return kubeconfig
}

func (c *Cluster) issue(subject pki.Subject) (kubeconfig string, err error) {
	name := subject.CommonName
	return c.authority.File(name + ".kubeconfig"), c.authority.IssueKubeconfig(name, c.Plane.Server(), subject)
}

func unthrottled(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// sweep kills all processes of a group and removes its files except one directory.
func sweep(ctx context.Context, group process.Group, keep string) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := group.KillAll(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(group.Dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(group.Dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == keep {
			continue
		}
		if err := os.RemoveAll(filepath.Join(group.Dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// canRunPods reports whether the default namespace accepts pods: it does once it has a service account.
func (c *Cluster) canRunPods(ctx context.Context) bool {
	_, err := c.Client.CoreV1().ServiceAccounts(corev1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err == nil
}

func must(t *testing.T, doing string, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", doing, err))
	}
}
