// Package simulated runs clusters that are large and hollow: a real control plane on this machine with nodes that kwok
// plays. The real API server, controllers and scheduler create, place and delete the pods; only the containers are
// make-believe, for a pod is Ready as soon as it has a node.
//
// What such a cluster measures is what a controller costs: how long it takes to make thousands of pods (Pods), how often
// it writes (Writes), and what the control plane needs to bear it (Usage).
//
// There is one simulated cluster on a machine at a time, in one directory. A second Start waits until the first cluster
// is gone, and every Start first clears away what a killed test has left.
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

// Kwok is the daemon that plays the nodes, and the user as whom it writes.
const Kwok = "kwok"

const (
	startTimeout = 10 * time.Minute
	stopTimeout  = 10 * time.Minute
)

//go:embed kwok.yaml
var kwokConfiguration []byte

// Options say how large a cluster is.
type Options struct {
	Nodes int
	// PodsPerNode is how many pods a node has room for: 250, the most that Kubernetes is built for, unless it is set.
	PodsPerNode int
}

// Cluster is a running simulated cluster.
type Cluster struct {
	Plane controlplane.Plane
	// Config and Kubeconfig are the administrator's. No client with this Config throttles itself.
	Config     *rest.Config
	Kubeconfig string
	// Client is a client with that Config.
	Client kubernetes.Interface

	authority *pki.Authority
}

// Start brings up a cluster that ends with the test, and returns when its nodes are ready for pods in the default namespace.
func Start(t *testing.T, options Options) *Cluster {
	t.Helper()
	group, err := processes()
	must(t, "finding the cluster's place", err)
	dirs, err := binaries.BuildAll(t.Context(), t.Output(), binaries.ControlPlane, binaries.Controllers, binaries.Kwok)
	must(t, "building the daemons", err)
	unlock, err := cache.Lock(group.Dir + ".lock")
	must(t, "waiting for other simulated clusters to end", err)
	t.Cleanup(unlock)
	must(t, "clearing away what was left", sweep(t.Context(), group, ""))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the logs of the cluster's daemons are in %s", filepath.Dir(group.LogFile(Kwok)))
		}
		must(t, "ending the cluster", sweep(context.WithoutCancel(t.Context()), group, "logs"))
	})

	cluster := &Cluster{Plane: controlplane.Plane{
		Processes:      group,
		Binaries:       dirs,
		Address:        "127.0.0.1",
		ServiceCIDR:    "10.96.0.0/16",
		ServiceAddress: "10.96.0.1",
		PodCIDR:        "10.128.0.0/9",
		// One kwok speaks for all nodes, late when the machine is as busy as a measurement makes it.
		NodeGracePeriod: 5 * time.Minute,
	}}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	must(t, "starting the cluster", cluster.start(ctx))
	must(t, "adding nodes", cluster.addNodes(ctx, options))
	return cluster
}

// processes are the daemons of the one simulated cluster of this machine, in the directory where all its files lie.
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

// ConfigFor is the configuration of a client with the KubeconfigFor the user, which does not throttle itself.
func (c *Cluster) ConfigFor(t *testing.T, user string) *rest.Config {
	t.Helper()
	config, err := unthrottled(c.KubeconfigFor(t, user))
	must(t, "reading the kubeconfig of "+user, err)
	return config
}

// KubeconfigFor is the file for a client that may do everything and writes under the user name given, so that Writes can
// tell it from all others. The API server treats it as the service account of a workload, neither more patiently nor
// less: administrators, by contrast, never wait for others.
func (c *Cluster) KubeconfigFor(t *testing.T, user string) string {
	t.Helper()
	_, err := c.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	must(t, "giving rights to "+user, err)
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

// sweep ends all processes of a group and removes its files but for one directory.
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
