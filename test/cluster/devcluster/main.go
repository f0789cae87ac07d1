// Command devcluster starts and stops a real Kubernetes on this computer for tests, and injects faults into it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// command is a subcommand of devcluster.
type command struct {
	usage string
	help  string
	run   func(ctx context.Context, arguments []string) error
}

// errUsage makes main print the list of commands.
var errUsage = errors.New("no such command")

// commands are the subcommands for users, in the order of the help text.
var commands = []command{
	{"up [NODES]", "start a cluster with NODES nodes (3)", up},
	{"down", "stop the cluster and remove everything except its logs", down},
	{"status", "list nodes, daemons and their logs", status},
	{"kubeconfig", "print the path of the kubeconfig", kubeconfig},
	{"env", "print shell commands that set KUBECONFIG, and PATH to its kubectl and Helm", environment},
	{"binaries", "build every program that test clusters run and print their directories", buildBinaries},
	{"images [OPERATOR]", "build every image, with that operator binary", buildImages},
	{"bills DIRECTORY", "write an SBOM (CycloneDX) for each image into a directory", writeBills},
	{"outdated", "list the packages in the images that have a security update in Debian", listOutdated},
	{"node on|off NAME", "power a node on or off", power},
	{"node cut|heal NAME", "disconnect a node from the network, or reconnect it", power},
	{"node delay NAME DURATION", "delay everything that a node sends and receives; 0s removes the delay", power},
	{"machine on|off", "add or remove a node that is a virtual machine with cgroup v2", machine},
	{"daemon stop|continue|restart NAME", "stop, continue or restart a daemon: etcd, node-1/kubelet, …", daemon},
	{"policies on|off", "enforce NetworkPolicies, which no node does by default, or stop enforcing them", policies},
	{"audit [DURATION]", "count writes to the API server by user in the last DURATION (all)", auditLog},
}

// internal are the daemons that devcluster implements.
var internal = map[string]func(ctx context.Context, arguments []string) error{
	"registry":  serveRegistry,
	"node-init": nodeInit,
	"relay":     relay,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if errors.Is(err, errUsage) {
		fmt.Fprint(os.Stderr, usage())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to release
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 {
		return errUsage
	}
	name, rest := arguments[0], arguments[1:]
	if daemon, ok := internal[name]; ok {
		return daemon(ctx, rest)
	}
	for _, command := range commands {
		if strings.Fields(command.usage)[0] == name {
			return command.run(ctx, rest)
		}
	}
	return errUsage
}

func usage() string {
	var text strings.Builder
	text.WriteString("usage:\n")
	for _, command := range commands {
		fmt.Fprintf(&text, "  devcluster %-35s %s\n", command.usage, command.help)
	}
	return text.String()
}

// number parses an optional number argument.
func number(arguments []string, otherwise int) (int, error) {
	if len(arguments) == 0 {
		return otherwise, nil
	}
	value, err := strconv.Atoi(arguments[0])
	if err != nil || value < 1 {
		return 0, fmt.Errorf("%q is not a number of nodes", arguments[0])
	}
	return value, nil
}
