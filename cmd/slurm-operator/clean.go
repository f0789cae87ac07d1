package main

import (
	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/inpod/sharedmemory"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func cleanCommand() *cobra.Command {
	cleaner := sharedmemory.Cleaner{Directory: "/dev/shm", Proc: "/proc"}
	command := &cobra.Command{
		Use:   "clean JOB",
		Short: "Deletes what ended jobs left in shared memory (in the slurmd image, as an epilog)",
		Args:  cobra.ExactArgs(1),
		RunE:  func(_ *cobra.Command, args []string) error { return cleaner.Clean(args[0]) },
	}
	command.Flags().StringVar(&cleaner.Node, "node", "", "name of the Slurm node")
	command.Flags().StringVar(&cleaner.Spool, "spool", slurmconf.SlurmdSpoolDir, "directory of slurmd's sockets")
	_ = command.MarkFlagRequired("node") // it exists
	return command
}
