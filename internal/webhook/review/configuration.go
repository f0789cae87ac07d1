package review

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// cgroupFile is the one file besides slurm.conf of which a mistake ends every slurmd at once.
const cgroupFile = "cgroup.conf"

// ownFiles are those that the operator writes.
var ownFiles = []string{slurmconf.FileName, "jwks.json", slinkyv1beta1.SlurmKeyFile, slinkyv1beta1.JWTKeyFile}

// files are ConfigMaps whose values become files.
type files struct {
	field      string
	references []slinkyv1beta1.ObjectReference
}

func fileReferences(controller *slinkyv1beta1.Controller) []files {
	spec := &controller.Spec
	return []files{
		{"configFileRefs", spec.ConfigFileRefs},
		{"prologScriptRefs", spec.PrologScriptRefs},
		{"epilogScriptRefs", spec.EpilogScriptRefs},
		{"prologSlurmctldScriptRefs", spec.PrologSlurmctldScriptRefs},
		{"epilogSlurmctldScriptRefs", spec.EpilogSlurmctldScriptRefs},
	}
}

// fileNames are the names of all files of ConfigMaps, as far as these were found.
func fileNames(references []slinkyv1beta1.ObjectReference, found Found) []string {
	var names []string
	for _, reference := range references {
		if configMap := as[*corev1.ConfigMap](found, ConfigMapKind, reference.Name); configMap != nil {
			names = append(names, slices.Sorted(maps.Keys(configMap.Data))...)
		}
	}
	return names
}

// extraConfFaults are the lines that no slurm.conf of this Controller could have.
func extraConfFaults(controller *slinkyv1beta1.Controller, found Found) []Finding {
	if controller.Spec.External {
		return nil
	}
	_, err := slurmconf.Build(cluster(controller, found))
	return lines("spec.extraConf", err)
}

// configurationCautions are about what does not go together with other objects.
func configurationCautions(controller *slinkyv1beta1.Controller, found Found) []Finding {
	whole := cluster(controller, found)
	for i := range found.NodeSets {
		set := slurmconf.NodeSet{Name: found.NodeSets[i].Name}
		if partition := &found.NodeSets[i].Spec.Partition; partition.Enabled {
			set.Partition = &partition.Config
		}
		whole.NodeSets = append(whole.NodeSets, set)
	}
	spec := &controller.Spec
	whole.Prolog, whole.Epilog = fileNames(spec.PrologScriptRefs, found), fileNames(spec.EpilogScriptRefs, found)
	whole.PrologSlurmctld, whole.EpilogSlurmctld = fileNames(spec.PrologSlurmctldScriptRefs, found), fileNames(spec.EpilogSlurmctldScriptRefs, found)
	_, err := slurmconf.Build(whole)
	alone := extraConfFaults(controller, found)
	var findings []Finding
	for _, finding := range lines("spec.extraConf", err) {
		if !slices.Contains(alone, finding) {
			findings = append(findings, finding)
		}
	}
	return append(findings, fileCautions(controller, found)...)
}

// cluster is what slurm.conf is made from, as far as it follows from the Controller.
func cluster(controller *slinkyv1beta1.Controller, found Found) slurmconf.Cluster {
	cluster := slurmconf.Cluster{
		Name: naming.ClusterName(controller), Port: naming.PortSlurmctld, SlurmUser: "slurm",
		JWKS: controller.Spec.JWKSKeyRef != nil, Metrics: controller.Spec.Metrics.Enabled, ExtraConf: controller.Spec.ExtraConf,
	}
	for _, pod := range naming.ControllerPods(controller) {
		cluster.Hosts = append(cluster.Hosts, slurmconf.Host{Name: pod})
	}
	live := 0
	if nodes := controller.Status.Nodes; nodes != nil {
		live = int(nodes.Total)
	}
	cluster.MaxNodeCount = slurmconf.MaxNodeCount(0, live, 0, controller.Spec.MaxNodeCount)
	if reference := controller.Spec.AccountingRef; reference != nil {
		cluster.Accounting = endpoint(reference.Name, controller.Namespace, as[*slinkyv1beta1.Accounting](found, AccountingKind, reference.Name))
	}
	return cluster
}

// endpoint is where the slurmdbd of an Accounting listens, which may be nil.
func endpoint(name, namespace string, accounting *slinkyv1beta1.Accounting) *slurmconf.Endpoint {
	endpoint := &slurmconf.Endpoint{Host: naming.Accounting(name) + "." + namespace, Port: naming.PortSlurmdbd}
	switch {
	case accounting == nil:
	case accounting.Spec.External && accounting.Spec.ExternalConfig != nil:
		endpoint.Host, endpoint.Port = accounting.Spec.ExternalConfig.Host, int(cmp.Or(accounting.Spec.ExternalConfig.Port, naming.PortSlurmdbd))
	default:
		endpoint.Port = int(accounting.Spec.Service.Port)
	}
	return endpoint
}

// lines are the findings about lines of a field, in their order.
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

// fileCautions are about files that slurmctld will not get.
func fileCautions(controller *slinkyv1beta1.Controller, found Found) []Finding {
	var findings []Finding
	from := map[string]string{}
	for _, files := range fileReferences(controller) {
		for i, reference := range files.references {
			configMap := as[*corev1.ConfigMap](found, ConfigMapKind, reference.Name)
			if configMap == nil {
				continue
			}
			field := fmt.Sprintf("spec.%s[%d].name", files.field, i)
			for _, file := range slices.Sorted(maps.Keys(configMap.Data)) {
				if other, taken := from[file]; taken {
					findings = append(findings, find(field, reference.Name,
						"ConfigMap %s has a file %s too, and they lie in one directory, so no configuration is applied; rename one of them", other, file))
				}
				from[file] = reference.Name
				if slices.Contains(ownFiles, file) {
					findings = append(findings, find(field, reference.Name,
						"the ConfigMap has a file %s, which the operator writes, so no configuration is applied; remove it, and use spec.extraConf for lines of slurm.conf", file))
				}
			}
			findings = append(findings, cgroupCautions(field, reference.Name, configMap.Data[cgroupFile])...)
		}
	}
	return findings
}

// cgroupCautions are the lines of a cgroup.conf that slurmd would end at.
func cgroupCautions(field, name, text string) []Finding {
	_, err := slurmconf.BuildCgroup(text)
	var findings []Finding
	for _, fault := range slurmconf.Errors(err) {
		findings = append(findings, find(field, name, "%s, line %d: %s: %s; %s", cgroupFile, fault.Line, fault.Text, fault.Reason, fault.Remedy))
	}
	return findings
}
