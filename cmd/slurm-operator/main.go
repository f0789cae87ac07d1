// Command slurm-operator runs Slurm clusters on Kubernetes: one binary, one image, a subcommand for each thing it does.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version is set by the linker.
var version = "dev"

func main() {
	root := &cobra.Command{
		Use:           "slurm-operator",
		Short:         "Runs Slurm clusters on Kubernetes",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		managerCommand(), webhookCommand(), releaseCommand(), agentCommand(), installCommand(), slurmdbdCommand(), trialCommand(),
	)
	if err := root.ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "slurm-operator:", err)
		os.Exit(1)
	}
}
