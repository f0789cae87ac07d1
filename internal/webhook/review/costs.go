package review

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Changes that would cost jobs wait, or are made because an annotation asks for it: see slurmconf.Costs. Warnings say
// so beforehand. They are about what a change adds, compared to the configuration in force, which the Controller's
// ConfigMap has: what waits already, and what is put back before it was applied, is not warned of.

// controllerCosts returns warnings about the costs of a changed Controller.
func controllerCosts(before, after *slinkyv1beta1.Controller, found Found) []Finding {
	costs := newCosts(found, after.Name,
		func(inForce slurmconf.Document) slurmconf.Costs {
			return costsOf(before, found.NodeSets, found, inForce)
		},
		func(inForce slurmconf.Document) slurmconf.Costs {
			return costsOf(after, found.NodeSets, found, inForce)
		})
	return costFindings(costs, "spec.extraConf", "spec.extraConf", "spec.extraConf")
}

// nodeSetCosts returns warnings about the costs of a changed NodeSet.
func nodeSetCosts(before, after *slinkyv1beta1.NodeSet, found Found) []Finding {
	controller := as[*slinkyv1beta1.Controller](found, ControllerKind, after.Spec.ControllerRef.Name)
	if controller == nil {
		return nil
	}
	with := func(set *slinkyv1beta1.NodeSet) func(slurmconf.Document) slurmconf.Costs {
		sets := slices.DeleteFunc(slices.Clone(found.NodeSets),
			func(other slinkyv1beta1.NodeSet) bool { return other.Name == set.Name })
		return func(inForce slurmconf.Document) slurmconf.Costs {
			return costsOf(controller, append(sets, *set), found, inForce)
		}
	}
	was, is := &before.Spec, &after.Spec
	gres := changed(
		difference{"spec.gres", was.Gres, is.Gres}, difference{"spec.extraConf", was.ExtraConf, is.ExtraConf},
		difference{"spec.slurmd", was.Slurmd, is.Slurmd}, difference{"spec.template", was.Template, is.Template},
	)
	partition := changed(
		difference{"spec.partition.enabled", was.Partition.Enabled, is.Partition.Enabled},
		difference{"spec.template", was.Template, is.Template},
	)
	return costFindings(newCosts(found, controller.Name, with(before), with(after)), "spec.ssh.enabled", gres, partition)
}

// newCosts returns the costs of a change that were not there before it. There are none if the configuration in force is
// not known, or if there is none yet.
func newCosts(found Found, controller string, before, after func(inForce slurmconf.Document) slurmconf.Costs,
) slurmconf.Costs {
	live := as[*corev1.ConfigMap](found, ConfigMapKind, naming.Configuration(controller))
	if live == nil {
		return slurmconf.Costs{}
	}
	inForce, _ := slurmconf.Parse(live.Data[slurmconf.FileName]) // the operator wrote it
	return after(inForce).Without(before(inForce))
}

// costsOf returns what the configuration of a Controller and its NodeSets changes at the cost of jobs: nothing as long
// as it cannot be built, because then it is not applied. That of an external slurmctld, which has no host here, is not
// built either.
func costsOf(controller *slinkyv1beta1.Controller, sets []slinkyv1beta1.NodeSet, found Found,
	inForce slurmconf.Document) slurmconf.Costs {
	full := cluster(controller, found)
	full.Confined, full.Contain = clusterconf.IsConfined(inForce), clusterconf.Contains(sets, inForce)
	written := slurmconf.Written(controller.Spec.ExtraConf)
	names, leftOut := clusterconf.SlurmNames(sets, inForce, written), false
	for i := range sets {
		set, _, err := clusterconf.NodeSet(&sets[i])
		if set.SlurmName = names[set.Name]; err != nil || set.SlurmName == "" || set.Check() != nil {
			leftOut = true
			continue
		}
		full.NodeSets = append(full.NodeSets, set)
	}
	document, err := slurmconf.Build(full)
	if err != nil {
		return slurmconf.Costs{}
	}
	costs := slurmconf.CostsOf(document, inForce, clusterconf.DespiteJobs(controller))
	if leftOut { // a NodeSet with a mistake keeps what it has in force
		costs.GresTypes, costs.Partitions = nil, nil
	}
	return costs
}

// costFindings returns warnings about costs, with the fields that cause them.
func costFindings(costs slurmconf.Costs, keys, gres, partitions string) []Finding {
	var findings []Finding
	for _, change := range costs.Keys {
		switch {
		case change.Despite:
			findings = append(findings, find("metadata.annotations", change.Key,
				"jobs are lost, because a change of this key costs running jobs, and the annotation %s does not let it wait; "+
					"put the old value back, or remove the key from the annotation",
				slinkyv1beta1.AnnotationChangeDespiteJobs))
		case change.CostsPending():
			findings = append(findings, find(keys, change.Key,
				"the higher value stays until there is no job, pending or running, because jobs that do not fit are lost; to "+
					"change it now, and lose jobs, name it in the annotation %s", slinkyv1beta1.AnnotationChangeDespiteJobs))
		default:
			findings = append(findings, find(keys, change.Key,
				"the value in force stays until no job runs, because a change costs running jobs; to change it now, and lose "+
					"jobs, name it in the Controller's annotation %s", slinkyv1beta1.AnnotationChangeDespiteJobs))
		}
	}
	for _, nodes := range costs.Nodes {
		advice := "the lines stay until these nodes are drained and have no job, or no job runs, as a change costs " +
			"jobs; to change them now, and lose jobs, name NodeName in the annotation %s"
		if nodes.Despite {
			advice = "jobs of these Slurm nodes are lost, because the annotation %s does not let their lines wait; put the " +
				"lines back, or remove NodeName from the annotation"
		}
		findings = append(findings, find(keys, "NodeName="+nodes.Names, advice, slinkyv1beta1.AnnotationChangeDespiteJobs))
	}
	for _, name := range costs.GresTypes {
		findings = append(findings, find(gres, name,
			"this GRES type stays in slurm.conf until no Slurm node has it, because slurmctld would forget which job uses "+
				"it; nothing else is to be done"))
	}
	for _, name := range costs.Partitions {
		findings = append(findings, find(partitions, "PartitionName="+name,
			"the partition stays, and takes no new jobs, until it has none, because slurmctld would end its jobs; cancel "+
				"them to remove it now"))
	}
	return findings
}
