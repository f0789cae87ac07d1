package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/inpod/cpus"
	"github.com/slurm-operator/slurm-operator/internal/inpod/first"
	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmuser"
)

func startCommand() *cobra.Command {
	var uid int64
	var cpuFile string
	var cpuLimit int
	command := &cobra.Command{
		Use:   "start COMMAND...",
		Short: "Runs a program as the first process of a container, whatever the image's entrypoint (in the Slurm image)",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if uid != 0 {
				if err := slurmuser.Check(slurmuser.Passwd, uid); err != nil {
					return err
				}
			}
			if cpuFile != "" {
				if err := describeCPUs(cpuFile, cpuLimit); err != nil {
					return err
				}
			}
			code, err := first.Run(args)
			if err == nil {
				os.Exit(code)
			}
			return err
		},
	}
	command.Flags().Int64Var(&uid, "slurm-user", 0, "do not start unless the image's user slurm has this ID")
	command.Flags().StringVar(&cpuFile, "cpu-file", "", "describe the container's CPUs for slurmd in this file")
	command.Flags().IntVar(&cpuLimit, "cpus", 0, "number of CPUs of slurmd's node, or 0 if it has all of them")
	command.Flags().SetInterspersed(false) // flags after the command belong to it
	return command
}

// describeCPUs makes slurmd use the container's CPUs.
func describeCPUs(file string, limit int) error {
	needed, err := cpus.Describe(file, limit)
	if err != nil || !needed {
		return err
	}
	return os.Setenv(cpus.Variable, file)
}
