// Command slurm-operator runs Slurm clusters on Kubernetes: one binary, one image, one subcommand per task.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmd"
	migrate "github.com/slurm-operator/slurm-operator/internal/migrate/command"
)

// version is set by the linker.
var version = "dev"

func main() {
	if slurmd.IsCalled() {
		fmt.Fprintln(os.Stderr, "slurm-operator: starting slurmd:", slurmd.Start())
		os.Exit(1)
	}
	root := &cobra.Command{
		Use:           "slurm-operator",
		Short:         "Runs Slurm clusters on Kubernetes",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		managerCommand(), webhookCommand(), releaseCommand(), agentCommand(), installCommand(), runCommand(),
		slurmdbdCommand(), validateCommand(), confineCommand(), startCommand(), cleanCommand(), terminateCommand(),
		migrate.New("slurm-operator"),
	)
	// Further signals are ignored: a daemon under this program, such as slurmctld, may need time to save its state.
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "slurm-operator:", err)
		os.Exit(1)
	}
}

// connect returns the configuration of the API server.
func connect() (*rest.Config, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server (is KUBECONFIG set, or does this run in a pod?): %w", err)
	}
	return config, nil
}
