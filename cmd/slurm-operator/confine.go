package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/inpod/cgroups"
)

func confineCommand() *cobra.Command {
	var opts cgroups.Options
	command := &cobra.Command{
		Use:   "confine -- COMMAND...",
		Short: "Prepares the container's cgroups for jobs, and becomes another program (in the slurmd image)",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			runtime.LockOSThread() // namespaces and capabilities are those of a thread
			version, err := cgroups.Prepare(cgroups.Directory, opts)
			if err != nil {
				return err
			}
			return cgroups.Exec(version, args)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&opts.Remount, "remount", false, "make the container's cgroups writable, which needs SYS_ADMIN")
	flags.BoolVar(&opts.Devices, "devices", false, "require that jobs can be limited to their devices")
	return command
}
