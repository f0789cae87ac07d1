// Package controlplane runs a Kubernetes control plane as plain processes on one computer: etcd, the API server, the
// controller manager and the scheduler. Real clusters (package cluster) and simulated ones (kwok) use it.
package controlplane

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
	"github.com/slurm-operator/slurm-operator/test/cluster/pki"
	"github.com/slurm-operator/slurm-operator/test/cluster/process"
)

// The daemons, which are also the names of their logs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

const (
	securePort = 6443
	etcdPort   = 2379
	peerPort   = 2380

	defaultNodeGracePeriod = 20 * time.Second

	startTimeout = 10 * time.Minute
	stopGrace    = 5 * time.Second
)

// Plane is a control plane with all files in one directory.
type Plane struct {
	Processes process.Group
	// Binaries are the directories with its programs.
	Binaries []string
	// Address is the address that all its daemons listen on.
	Address string
	// ServiceCIDR is the range of cluster IPs of Services; ServiceAddress is the first of them, the API server's own.
	ServiceCIDR    string
	ServiceAddress string
	// PodCIDR is the range of pod addresses.
	PodCIDR string
	// NodeGracePeriod is the node monitor grace period, 20 seconds by default: short enough that a test of a lost node
	// does not take minutes, long enough for a busy computer.
	NodeGracePeriod time.Duration
}

// Start starts all daemons and returns when the API server is ready.
func (p Plane) Start(ctx context.Context) (*pki.Authority, error) {
	authority, err := p.issue()
	if err != nil {
		return nil, fmt.Errorf("issuing certificates: %w", err)
	}
	if err := os.WriteFile(p.file("audit-policy.yaml"), []byte(auditPolicy), 0o644); err != nil {
		return nil, err
	}
	for _, name := range []string{Etcd, APIServer} {
		if err := p.StartDaemon(name); err != nil {
			return nil, err
		}
	}
	if err := p.WaitReady(ctx); err != nil {
		return nil, err
	}
	for _, name := range []string{ControllerManager, Scheduler} {
		if err := p.StartDaemon(name); err != nil {
			return nil, err
		}
	}
	return authority, nil
}

// StartDaemon starts one daemon of a control plane whose certificates exist.
func (p Plane) StartDaemon(name string) error {
	arguments, known := map[string]func() []string{
		Etcd:              p.etcdArguments,
		APIServer:         p.apiserverArguments,
		ControllerManager: p.controllerManagerArguments,
		Scheduler:         p.schedulerArguments,
	}[name]
	if !known {
		return fmt.Errorf("no daemon %q in a control plane", name)
	}
	path, err := binaries.Find(p.Binaries, name)
	if err != nil {
		return err
	}
	return p.Processes.Start(process.Spec{Name: name, Path: path, Args: arguments()})
}

// StopDaemon stops a daemon.
func (p Plane) StopDaemon(ctx context.Context, name string) error {
	return p.Processes.Stop(ctx, name, stopGrace)
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (p Plane) Kubeconfig() string { return p.file("pki/admin.kubeconfig") }

// AuditLog returns the path of the API server's audit log, one JSON object per line.
func (p Plane) AuditLog() string { return filepath.Join(p.Processes.Dir, "logs", "audit.log") }

// Server returns the API server's URL.
func (p Plane) Server() string {
	return "https://" + net.JoinHostPort(p.Address, strconv.Itoa(securePort))
}

// WaitReady waits until the API server is ready.
func (p Plane) WaitReady(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig())
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true,
		func(ctx context.Context) (bool, error) {
			if !p.Processes.Running(APIServer) {
				return false, fmt.Errorf("%s has exited", APIServer)
			}
			_, last = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
			return last == nil, nil
		})
	if err != nil {
		return fmt.Errorf("waiting for the API server (log: %s): %w: %w", p.Processes.LogFile(APIServer), err, last)
	}
	return nil
}

func (p Plane) file(name string) string { return filepath.Join(p.Processes.Dir, name) }

func (p Plane) issue() (*pki.Authority, error) {
	authority, err := pki.New(p.file("pki"))
	if err != nil {
		return nil, err
	}
	for name, subject := range map[string]pki.Subject{
		"apiserver": {CommonName: "kube-apiserver", Hosts: []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
			"localhost", "127.0.0.1", p.Address, p.ServiceAddress,
		}},
		"apiserver-kubelet-client": {CommonName: "kube-apiserver-kubelet-client", Organization: "system:masters"},
		"front-proxy-client":       {CommonName: "front-proxy-client"},
	} {
		if err := authority.Issue(name, subject); err != nil {
			return nil, err
		}
	}
	for name, subject := range map[string]pki.Subject{
		"admin":              {CommonName: "admin", Organization: "system:masters"},
		"controller-manager": {CommonName: "system:kube-controller-manager"},
		"scheduler":          {CommonName: "system:kube-scheduler"},
	} {
		if err := authority.IssueKubeconfig(name, p.Server(), subject); err != nil {
			return nil, err
		}
	}
	return authority, authority.IssueSigningKey("service-account")
}
