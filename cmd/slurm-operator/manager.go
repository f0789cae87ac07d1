package main

import (
	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/operator"
)

func managerCommand() *cobra.Command {
	options := operator.Options{
		Workers: 4, LeaderElection: true, ClusterDomain: "cluster.local",
		Images: naming.Images{
			Repository: "slurm-operator", Tag: "26.05", Operator: "slurm-operator/slurm-operator:" + version,
		},
	}
	command := &cobra.Command{
		Use:   "manager",
		Short: "Runs the controllers",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var err error
			if options.SlurmLog, err = options.StartLogging(command.Context(), command.ErrOrStderr()); err != nil {
				return err
			}
			config, err := connect()
			if err != nil {
				return err
			}
			return operator.Run(command.Context(), config, options)
		},
	}
	flags := command.Flags()
	options.AddFlags(flags)
	flags.StringVar(&options.PprofAddress, "pprof-bind-address", "",
		"address on which pprof profiles are served; not served by default")
	flags.StringVar(&options.Images.Repository, "slurm-image-repository", options.Images.Repository,
		"repository of the images of Slurm's daemons, unless a spec names one: <repository>/<daemon>:<tag>")
	flags.StringVar(&options.Images.Tag, "slurm-image-tag", options.Images.Tag,
		"the tag of the images of Slurm's daemons, unless a spec names one")
	flags.StringVar(&options.Images.Operator, "image", options.Images.Operator,
		"the operator's own image, for its helpers in slurmctld's pods")
	flags.StringVar(&options.ClusterDomain, "cluster-domain", options.ClusterDomain,
		"the DNS domain of the Kubernetes cluster, in which slurmd pods find each other by their bare names; none "+
			"when empty")
	flags.IntVar(&options.Workers, "workers", options.Workers,
		"how many objects of each resource type are reconciled in parallel")
	flags.StringToIntVar(&options.WorkersByKind, "workers-by-kind", nil,
		"the same for single resource types, such as NodeSet=16,Controller=8, instead of --workers")
	options.AddSlurmFlag(flags)
	options.SlurmClient.AddFlags(flags)
	flags.BoolVar(&options.LeaderElection, "leader-elect", options.LeaderElection,
		"elect a leader: only one of several replicas acts")
	flags.StringVar(&options.LeaderElectionNamespace, "leader-election-namespace", "",
		"namespace of the leader election lease; the pod's own namespace by default")
	return command
}
