// Package slurmnet runs a real Slurm cluster for a test, without Kubernetes, in a few seconds.
//
// Every daemon runs on its own host, with a name, an address and a root filesystem: the same images that run in pods,
// in Linux namespaces. The kernel kills the first process of each host's PID namespace when the test process exits for
// any reason, and with it all others, so nothing can outlive a test. The test itself does not change namespaces and
// reaches slurmrestd at Cluster.URL.
//
// It needs root, the Debian packages iproute2 and util-linux, and what package hack/images needs to build images that
// are not in the cache.
package slurmnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/images"
)

// readyTimeout is how long a cluster may take to become ready on a busy computer.
const readyTimeout = 10 * time.Minute

// Options describe a cluster.
type Options struct {
	// Version is the Slurm version: one of images.Versions.
	Version string
	// Nodes is the number of nodes with a running slurmd, named node-0, node-1 and so on.
	Nodes int
	// CloudNodes is the number of configured nodes cloud-0, cloud-1, … without a slurmd. They cost nothing, so there
	// can be thousands.
	CloudNodes int
	// NodeLine are the parameters of the nodes in slurm.conf, such as "CPUs=2"; if empty, they have no line there, and are
	// dynamic.
	NodeLine string
	// NodeConf is the configuration that slurmds register with, such as "CPUs=1000"; empty for the actual hardware.
	NodeConf string
	// SlurmdArgs are further arguments of all slurmds.
	SlurmdArgs []string
	// SlurmrestdEnv are environment variables of slurmrestd, such as NAME=value.
	SlurmrestdEnv []string
	// Accounting adds slurmdbd and MariaDB.
	Accounting bool
	// IPv6 gives all hosts addresses of IPv6 only.
	IPv6 bool
	// ExtraConf is appended to slurm.conf.
	ExtraConf string
	// Files are additional files in slurmctld's /etc/slurm, by name.
	Files map[string]string
}

// A Cluster is a running Slurm cluster.
type Cluster struct {
	// URL is the address of slurmrestd.
	URL string

	Slurmctld  *Daemon
	Slurmrestd *Daemon
	Login      *Daemon
	// Slurmdbd and MariaDB are nil without accounting.
	Slurmdbd *Daemon
	MariaDB  *Daemon
	// Nodes are the slurmds.
	Nodes []*Daemon

	daemons  []*Daemon // all of the above, in start order
	machines []*Machine
	sandbox  *sandbox
	jwtKey   []byte
	opts     Options
}

// Start starts a cluster and returns when all its nodes are idle. It is stopped when the test ends; if the test has
// failed, the daemons' logs are printed before.
func Start(tb testing.TB, opts Options) *Cluster {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Fatal("slurmnet creates namespaces and mounts: run the tests as root")
	}
	if err := images.Build(tb.Context(), tb.Output(), images.Options{}); err != nil {
		tb.Fatal(err)
	}
	sandbox, err := claimSandbox(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	sandbox.ipv6 = opts.IPv6
	cluster := &Cluster{sandbox: sandbox, opts: opts}
	logs := tb.TempDir() // created first, because cleanups run in reverse order
	tb.Cleanup(func() {
		if tb.Failed() {
			cluster.printLogs(tb)
		}
		if err := cluster.close(); err != nil {
			tb.Errorf("stopping the cluster: %v", err)
		}
	})
	if err := cluster.define(tb.Context(), logs, opts); err != nil {
		tb.Fatal(err)
	}
	var setup strings.Builder
	for i, daemon := range cluster.daemons {
		setup.WriteString(daemon.setup(i))
	}
	if err := sandbox.open(setup.String()); err != nil {
		tb.Fatal(err)
	}
	if err := cluster.configure(opts); err != nil {
		tb.Fatal(err)
	}
	cluster.startAll(tb)
	cluster.WaitReady(tb)
	return cluster
}

// define defines the daemons.
func (c *Cluster) define(ctx context.Context, logs string, opts Options) error {
	if opts.Nodes > 200 {
		return errors.New("at most 200 nodes fit into a cluster's subnet; CloudNodes has no such limit")
	}
	add := func(name, image string, args ...string) (*Daemon, error) {
		unpacked, err := images.Unpack(ctx, image)
		if err != nil {
			return nil, err
		}
		daemon := &Daemon{
			Name:    name,
			sandbox: c.sandbox,
			address: c.sandbox.address(len(c.daemons) + 1),
			image:   unpacked,
			args:    args,
			logPath: filepath.Join(logs, name+".log"),
		}
		c.daemons = append(c.daemons, daemon)
		return daemon, nil
	}
	var failures [5]error
	if opts.Accounting {
		c.MariaDB, failures[0] = add("mariadb", images.MariaDB)
		c.Slurmdbd, failures[1] = add("slurmdbd", images.Slurm("slurmdbd", opts.Version))
	}
	c.Slurmctld, failures[2] = add("slurmctld", images.Slurm("slurmctld", opts.Version))
	c.Slurmrestd, failures[3] = add("slurmrestd", images.Slurm("slurmrestd", opts.Version), opts.slurmrestdCommand()...)
	c.Login, failures[4] = add("login", images.Slurm("login", opts.Version), "--conf-server", "slurmctld:6817")
	if err := errors.Join(failures[:]...); err != nil {
		return err
	}
	slurmd := []string{"/usr/sbin/slurmd", "-D", "-b", "--conf-server", "slurmctld:6817"}
	if opts.NodeLine == "" {
		slurmd = append(slurmd, "-Z")
	}
	if opts.NodeConf != "" {
		slurmd = append(slurmd, "--conf", opts.NodeConf)
	}
	slurmd = append(slurmd, opts.SlurmdArgs...)
	for i := range opts.Nodes {
		node, err := add(fmt.Sprintf("node-%d", i), images.Slurm("slurmd", opts.Version), slurmd...)
		if err != nil {
			return err
		}
		c.Nodes = append(c.Nodes, node)
	}
	c.URL = "http://" + net.JoinHostPort(c.Slurmrestd.address, "6820")
	return nil
}

// slurmrestdCommand omits the plugins that need slurmdbd if there is none: 24.11 would not start with them.
func (o Options) slurmrestdCommand() []string {
	command := append(append([]string{"/usr/bin/env"}, o.SlurmrestdEnv...), "/usr/sbin/slurmrestd", "-a", "rest_auth/jwt")
	if !o.Accounting {
		command = append(command, "-s", "openapi/slurmctld")
	}
	if o.IPv6 {
		return append(command, "[::]:6820")
	}
	return append(command, "0.0.0.0:6820")
}

// startAll starts the daemons, each after those that it needs.
func (c *Cluster) startAll(tb testing.TB) {
	tb.Helper()
	ports := map[*Daemon]string{c.Slurmctld: "6817"}
	if c.opts.Accounting {
		ports[c.MariaDB], ports[c.Slurmdbd] = "3306", "6819"
	}
	for _, daemon := range c.daemons {
		daemon.Start(tb)
		if port, ok := ports[daemon]; ok {
			c.WaitFor(tb, daemon.Name+" to listen", func(ctx context.Context) error {
				return dial(ctx, net.JoinHostPort(daemon.address, port))
			})
		}
	}
}

func dial(ctx context.Context, address string) error {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}

// WaitReady waits until slurmctld answers through slurmrestd and all nodes that are running are idle.
func (c *Cluster) WaitReady(tb testing.TB) {
	tb.Helper()
	c.WaitFor(tb, "slurmrestd", c.ping)
	for _, node := range c.Nodes {
		if !node.running() {
			continue
		}
		c.WaitFor(tb, node.Name+" to be idle", func(ctx context.Context) error {
			state, err := c.nodeState(ctx, node.Name)
			if err == nil && strings.TrimSuffix(state, "+DYNAMIC_NORM") != "IDLE" {
				err = fmt.Errorf("it is %s", state)
			}
			return err
		})
	}
	// Wait until sackd has fetched the configuration, so that commands on the login node work.
	c.WaitFor(tb, "the login node", func(ctx context.Context) error {
		_, err := c.Run(ctx, "scontrol", "ping")
		return err
	})
}

// WaitFor polls until check succeeds. It fails immediately if a daemon has crashed.
func (c *Cluster) WaitFor(tb testing.TB, what string, check func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), readyTimeout)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	var last error // the last error before the deadline
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		for _, daemon := range c.daemons {
			if daemon.crashed() {
				tb.Fatalf("waiting for %s: %s has exited: %s", what, daemon.Name, daemon.init.err)
			}
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("waiting for %s: %v", what, last)
		case <-ticker.C:
		}
	}
}

// Run runs a command on the login node: see Daemon.Run.
func (c *Cluster) Run(ctx context.Context, args ...string) (string, error) {
	return c.Login.Run(ctx, args...)
}

// close kills all daemons in parallel, and removes the sandbox.
func (c *Cluster) close() error {
	var kills sync.WaitGroup
	for _, daemon := range c.daemons {
		if daemon.running() {
			kills.Go(daemon.init.kill)
		}
	}
	kills.Wait()
	return c.sandbox.close()
}

// printLogs prints the end of every daemon's log, so little that the test's own messages are not lost among them. The
// whole logs are artifacts: see go test -artifacts.
func (c *Cluster) printLogs(tb testing.TB) {
	tb.Helper()
	const maxBytes = 1024
	for _, daemon := range c.daemons {
		log := daemon.Logs()
		tb.Logf("end of the log of %s:\n%s", daemon.Name, log[max(0, len(log)-maxBytes):])
		if err := os.WriteFile(filepath.Join(tb.ArtifactDir(), daemon.Name+".log"), []byte(log), 0o600); err != nil {
			tb.Logf("keeping the log of %s: %v", daemon.Name, err)
		}
	}
}
