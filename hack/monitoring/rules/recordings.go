package rules

// Recordings are the recording rules. slurmctld 26.05 sums CPUs of a cluster and of a partition in 16 bits, so that
// they wrap at 65,536: these are sums of the numbers of single nodes. The inner max removes duplicates, if several
// Prometheus targets are the same slurmctld.
var Recordings = []Recording{
	sumOfNodes("slurm_node_cpus"),
	sumOfNodes("slurm_node_cpus_alloc"),
	sumOfNodes("slurm_node_memory_bytes"),
	sumOfNodes("slurm_node_memory_alloc_bytes"),
	sumOfNodes("slurm_node_gpus"),
	sumOfNodes("slurm_node_gpus_alloc"),
}

func sumOfNodes(metric string) Recording {
	return Recording{
		Name: "controller:" + metric + ":sum",
		Expr: "sum by (controller_namespace, controller) (max by (controller_namespace, controller, node) (" + metric + "))",
	}
}
