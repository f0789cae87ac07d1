// Package binaries builds the third-party programs of test clusters: Kubernetes itself, etcd, containerd and so on.
// Each directory below this one is a Go module that pins a group of programs; a group is built once per content of its
// module and kept in the cache outside the repository.
package binaries

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/cache"
	"github.com/slurm-operator/slurm-operator/hack/repo"
)

// Group is a set of programs from one module.
type Group struct {
	module   string
	programs []program
}

// Minors are the minor versions of Kubernetes that tests can run, the newest first. Each has its own module.
var Minors = []string{"1.36", "1.35", "1.34"}

// kubernetesPrefix is the beginning of the names of the modules of Kubernetes; the minor version follows.
const kubernetesPrefix = "kubernetes-"

// newest is the module of the newest minor, kubernetes that of the minor in the environment variable KUBERNETES, by
// default also the newest.
var (
	newest     = kubernetesPrefix + Minors[0]
	kubernetes = kubernetesPrefix + cmp.Or(os.Getenv("KUBERNETES"), Minors[0])
)

// program is a main package and the name of its binary.
type program struct{ name, pkg string }

// The groups, split by use, so that an integration test does not wait for a kubelet to be built. One program that is
// all of Kubernetes' would save only linking, 22 of 32 seconds of processor time, and would double the time and the
// memory that each kubectl needs to start.
var (
	// ControlPlane has the programs of an API server for tests.
	ControlPlane = Group{
		module: kubernetes,
		programs: []program{
			{"etcd", "go.etcd.io/etcd/server/v3"},
			{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
			{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
		},
	}
	// Controllers has Kubernetes' controllers and scheduler, which create and schedule the pods of a StatefulSet.
	Controllers = Group{
		module: kubernetes,
		programs: []program{
			{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
			{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
		},
	}
	// Node has Kubernetes' programs on each node of a real cluster.
	Node = Group{
		module: kubernetes,
		programs: []program{
			{"kubelet", "k8s.io/kubernetes/cmd/kubelet"},
			{"kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"},
		},
	}
	// Addons has the programs of a real cluster's add-ons. They are the same for every minor version, and are built from
	// the newest one's module because they share most of its packages.
	Addons = Group{
		module: newest,
		programs: []program{
			{"coredns", "./coredns"},
			{"local-path-provisioner", "github.com/rancher/local-path-provisioner"},
		},
	}
	// Containerd runs the containers of a node.
	Containerd = Group{
		module: "containerd",
		programs: []program{
			{"containerd", "github.com/containerd/containerd/v2/cmd/containerd"},
			{"containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"},
			{"ctr", "github.com/containerd/containerd/v2/cmd/ctr"},
		},
	}
	// CNI has the network plugins of a node.
	CNI = Group{
		module: "cni",
		programs: []program{
			{"host-local", "github.com/containernetworking/plugins/plugins/ipam/host-local"},
			{"loopback", "github.com/containernetworking/plugins/plugins/main/loopback"},
			{"portmap", "github.com/containernetworking/plugins/plugins/meta/portmap"},
			{"ptp", "github.com/containernetworking/plugins/plugins/main/ptp"},
		},
	}
	// Helm installs charts.
	Helm = Group{module: "helm", programs: []program{{"helm", "helm.sh/helm/v3/cmd/helm"}}}
	// Policies enforces NetworkPolicies on a node.
	Policies = Group{module: "netpol", programs: []program{{"netpol", "."}}}
	// Cosign signs releases.
	Cosign = Group{module: "cosign", programs: []program{{"cosign", "."}}}
	// Kwok simulates the kubelets of thousands of nodes.
	Kwok = Group{module: "kwok", programs: []program{{"kwok", "sigs.k8s.io/kwok/cmd/kwok"}}}
)

// Build returns the directory with the group's programs, and builds them first if they are not in the cache.
func (g Group) Build(ctx context.Context, log io.Writer) (string, error) {
	if minor, found := strings.CutPrefix(g.module, kubernetesPrefix); found && !slices.Contains(Minors, minor) {
		return "", fmt.Errorf("tests cannot run Kubernetes %s; set KUBERNETES to one of %s", minor,
			strings.Join(Minors, ", "))
	}
	root, err := repo.Root()
	if err != nil {
		return "", err
	}
	module := filepath.Join(root, "hack", "binaries", g.module)
	tree, err := cache.KeyOfTree(module)
	if err != nil {
		return "", err
	}
	key := cache.Key(tree, runtime.Version(), runtime.GOARCH, fmt.Sprint(g))
	return cache.Entry(ctx, filepath.Join("bin", g.module), key, func(ctx context.Context, dir string) error {
		stamp, err := g.versionFlags(ctx, module)
		if err != nil {
			return err
		}
		for _, program := range g.programs {
			if err := program.build(ctx, module, dir, stamp, log); err != nil {
				return err
			}
		}
		return nil
	})
}

// BuildAll builds several groups and returns one directory for each.
func BuildAll(ctx context.Context, log io.Writer, groups ...Group) ([]string, error) {
	dirs := make([]string, 0, len(groups))
	for _, group := range groups {
		dir, err := group.Build(ctx, log)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// Find returns the path of the named program in the first of the directories that has it.
func Find(dirs []string, name string) (string, error) {
	i := slices.IndexFunc(dirs, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
	if i < 0 {
		return "", fmt.Errorf("no program %s in %s", name, strings.Join(dirs, ", "))
	}
	return filepath.Join(dirs[i], name), nil
}

// build runs one go build per program: two of the programs cannot be built with one command, because they use different
// import paths for a shared dependency.
func (p program) build(ctx context.Context, module, dir, stamp string, log io.Writer) error {
	start := time.Now()
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w "+stamp,
		"-o", filepath.Join(dir, p.name), p.pkg)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", p.name, err, out)
	}
	fmt.Fprintf(log, "built %s in %s\n", p.name, time.Since(start).Round(time.Second))
	return nil
}

// versionFlags returns linker flags that make Kubernetes' programs report their version.
func (g Group) versionFlags(ctx context.Context, module string) (string, error) {
	if !strings.HasPrefix(g.module, kubernetesPrefix) {
		return "", nil
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	cmd.Dir = module
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("reading the version of Kubernetes: %w", err)
	}
	version := strings.TrimSpace(string(out))
	numbers := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(numbers) != 3 {
		return "", fmt.Errorf("version %q of Kubernetes is not of the form v1.2.3", version)
	}
	const variable = "-X k8s.io/component-base/version."
	return fmt.Sprintf("%sgitVersion=%s %sgitMajor=%s %sgitMinor=%s",
		variable, version, variable, numbers[0], variable, numbers[1]), nil
}
