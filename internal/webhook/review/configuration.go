package review

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// filesOf returns the files of a group of ConfigMaps that were found.
func filesOf(group clusterconf.Group, found Found) []clusterconf.File {
	var files []clusterconf.File
	for _, reference := range group.References {
		if configMap := as[*corev1.ConfigMap](found, ConfigMapKind, reference.Name); configMap != nil {
			files = append(files, clusterconf.FilesOf(reference.Name, configMap.Data)...)
		}
	}
	return files
}

// extraConfFaults returns the lines that are invalid in any slurm.conf of this Controller.
func extraConfFaults(controller *slinkyv1beta1.Controller, found Found) []Finding {
	if controller.Spec.External {
		return nil
	}
	_, err := slurmconf.Build(cluster(controller, found))
	return lines("spec.extraConf", err)
}

// configurationCautions returns warnings about conflicts with other objects.
func configurationCautions(controller *slinkyv1beta1.Controller, found Found) []Finding {
	full := cluster(controller, found)
	names := slurmNames(controller, found.NodeSets)
	for i := range found.NodeSets {
		set, _, _ := clusterconf.NodeSet(&found.NodeSets[i]) // the review of the NodeSet reports its own mistakes
		if set.SlurmName = names[set.Name]; set.SlurmName != "" {
			full.NodeSets = append(full.NodeSets, set)
		}
	}
	for _, group := range clusterconf.Groups(controller) {
		clusterconf.AddScripts(&full, group.Use, filesOf(group, found))
	}
	_, err := slurmconf.Build(full)
	alone := extraConfFaults(controller, found)
	var findings []Finding
	for _, finding := range lines("spec.extraConf", err) {
		if !slices.Contains(alone, finding) {
			findings = append(findings, finding)
		}
	}
	return append(findings, fileCautions(controller, found)...)
}

// slurmNames returns the names of NodeSets in Slurm. The configuration in force is not known here; what follows from it
// is recorded in the NodeSets.
func slurmNames(controller *slinkyv1beta1.Controller, sets []slinkyv1beta1.NodeSet) map[string]string {
	written := slurmconf.Written(controller.Spec.ExtraConf)
	return clusterconf.SlurmNames(sets, slurmconf.Document{}, written)
}

// cluster returns the input of slurm.conf that follows from the Controller.
func cluster(controller *slinkyv1beta1.Controller, found Found) slurmconf.Cluster {
	var accounting *slinkyv1beta1.Accounting
	if reference := controller.Spec.AccountingRef; reference != nil {
		accounting = as[*slinkyv1beta1.Accounting](found, AccountingKind, reference.Name)
	}
	cluster := clusterconf.Of(controller, accounting)
	cluster.MaxNodeCount = clusterconf.MaxNodeCount(controller, found.NodeSets, 0)
	return cluster
}

// lines returns the findings about lines of a field, sorted by line.
func lines(field string, err error) []Finding {
	faults := slurmconf.Errors(err)
	slices.SortStableFunc(faults, func(a, b *slurmconf.Error) int { return cmp.Compare(a.Line, b.Line) })
	var findings []Finding
	for _, fault := range faults {
		text, quoted := strconv.Unquote(fault.Text)
		if quoted != nil {
			text = fault.Text
		}
		findings = append(findings, find(field, text, "line %d: %s; %s", fault.Line, fault.Reason, fault.Remedy))
	}
	return findings
}

// fileCautions returns warnings about files that cannot be applied.
func fileCautions(controller *slinkyv1beta1.Controller, found Found) []Finding {
	var findings []Finding
	files := clusterconf.NewFiles(false)
	for _, group := range clusterconf.Groups(controller) {
		for i, reference := range group.References {
			configMap := as[*corev1.ConfigMap](found, ConfigMapKind, reference.Name)
			if configMap == nil {
				continue
			}
			field := fmt.Sprintf("%s[%d].name", group.Field, i)
			for _, file := range clusterconf.FilesOf(reference.Name, configMap.Data) {
				if err := files.Add(file); err != nil {
					findings = append(findings, find(field, reference.Name, "no configuration is applied: %v", err))
				}
			}
			findings = append(findings,
				cgroupCautions(field, reference.Name, configMap.Data[clusterconf.CgroupFile])...)
		}
	}
	return findings
}

// cgroupCautions returns warnings about lines of a cgroup.conf with which slurmd would exit.
func cgroupCautions(field, name, text string) []Finding {
	_, err := slurmconf.BuildCgroup(text)
	var findings []Finding
	for _, fault := range slurmconf.Errors(err) {
		findings = append(findings,
			find(field, name, "%s, line %d: %s: %s; %s", clusterconf.CgroupFile, fault.Line, fault.Text, fault.Reason,
				fault.Remedy))
	}
	return findings
}
