// Command kubectl-slurm is a plugin for kubectl: kubectl slurm says how a Slurm cluster is, why, and what to do.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/util/exec"

	"github.com/slurm-operator/slurm-operator/internal/plugin/command"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command.New(version).ExecuteContext(ctx)
	stop()
	// A command in a pod that fails has said why; only its exit code is passed on.
	if failure, failed := errors.AsType[exec.CodeExitError](err); failed {
		os.Exit(failure.Code)
	}
	if silent, ok := errors.AsType[command.ExitCode](err); ok {
		os.Exit(int(silent))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubectl slurm:", err)
		os.Exit(1)
	}
}
