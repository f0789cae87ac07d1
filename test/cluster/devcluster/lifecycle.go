package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/test/cluster"
	"github.com/slurm-operator/slurm-operator/test/cluster/controlplane"
	"github.com/slurm-operator/slurm-operator/test/cluster/node"
)

func up(ctx context.Context, arguments []string) error {
	nodes, err := number(arguments, 3)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	started := time.Now()
	made, err := cluster.Up(ctx, os.Stdout, cluster.Options{Nodes: nodes, Program: self})
	if err != nil {
		return err
	}
	fmt.Printf("the cluster is ready after %.1f s: export KUBECONFIG=%s\n", time.Since(started).Seconds(),
		made.Plane.Kubeconfig())
	return nil
}

func machine(ctx context.Context, arguments []string) error {
	return turn(arguments,
		func(found *cluster.Cluster) error { return found.StartMachine(ctx, os.Stdout) },
		func(found *cluster.Cluster) error { return found.StopMachine(ctx) })
}

func down(ctx context.Context, _ []string) error { return cluster.Down(ctx) }

func kubeconfig(context.Context, []string) error {
	found, err := cluster.Open()
	if err != nil {
		return err
	}
	fmt.Println(found.Plane.Kubeconfig())
	return nil
}

func environment(ctx context.Context, _ []string) error {
	found, err := cluster.Open()
	if err != nil {
		return err
	}
	// That of the running cluster, whose minor version may not be the one in the environment.
	kubectl, err := binaries.Find(found.Plane.Binaries, "kubectl")
	if err != nil {
		return err
	}
	helm, err := binaries.Helm.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	fmt.Printf("export KUBECONFIG=%s\nexport PATH=%s:%s:$PATH\n", found.Plane.Kubeconfig(), filepath.Dir(kubectl), helm)
	return nil
}

func status(ctx context.Context, _ []string) error {
	found, err := cluster.Open()
	if err != nil {
		return err
	}
	unready, err := found.UnreadyNodes(ctx)
	notReady := map[string]bool{}
	for _, name := range unready {
		notReady[name] = true
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tLOG")
	group := found.Plane.Processes
	for _, name := range []string{controlplane.Etcd, controlplane.APIServer, controlplane.ControllerManager,
		controlplane.Scheduler, cluster.Registry} {
		fmt.Fprintf(table, "%s\t%s\t%s\n", name, either(group.Running(name), "running", "stopped"), group.LogFile(name))
	}
	for _, node := range found.Nodes {
		state := either(node.Running(), "ready", "off")
		if node.Running() && (err != nil || notReady[node.Name]) {
			state = "not ready"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", node.Name, state, group.LogFile(node.Name+"-"+"kubelet"))
	}
	fmt.Fprintf(table, "%s\t%s\t%s\n", found.Machine.Name, either(found.Machine.Running(), "running", "off"),
		group.LogFile(found.Machine.Name+"-console"))
	return table.Flush()
}

func either(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

func buildBinaries(ctx context.Context, _ []string) error {
	dirs, err := binaries.BuildAll(ctx, os.Stderr, binaries.ControlPlane, binaries.Controllers, binaries.Node,
		binaries.Addons, binaries.Containerd, binaries.CNI, binaries.Helm, binaries.Kwok)
	for _, dir := range dirs {
		fmt.Println(dir)
	}
	return err
}

func buildImages(ctx context.Context, arguments []string) error {
	var options images.Options
	if len(arguments) > 0 {
		options.Operator = arguments[0]
	}
	return images.Build(ctx, os.Stdout, options)
}

func writeBills(ctx context.Context, arguments []string) error {
	if len(arguments) != 1 {
		return errUsage
	}
	return images.WriteBills(ctx, arguments[0])
}

func listOutdated(ctx context.Context, _ []string) error {
	outdated, err := images.Outdated(ctx)
	for _, update := range outdated {
		fmt.Println(update)
	}
	if err == nil && len(outdated) > 0 {
		err = fmt.Errorf("%d packages are outdated; delete the directories debian and images in the cache, and run "+
			"make images", len(outdated))
	}
	return err
}

func serveRegistry(ctx context.Context, arguments []string) error {
	dir, err := images.Dir()
	if err != nil {
		return err
	}
	server := &http.Server{Addr: arguments[0], Handler: images.Registry(dir), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	return server.ListenAndServe()
}

func nodeInit(_ context.Context, arguments []string) error { return node.Init(arguments[0]) }
