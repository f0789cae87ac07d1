package review

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/invalid"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/schedule"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// NodeSets reviews NodeSets.
var NodeSets = Reviewer[*slinkyv1beta1.NodeSet]{
	Spec: func(set *slinkyv1beta1.NodeSet) any { return set.Spec },
	References: func(set *slinkyv1beta1.NodeSet) []Reference {
		return []Reference{
			named("spec.controllerRef.name", ControllerKind, set.Spec.ControllerRef.Name, "no pod is created"),
			lookUp(ConfigMapKind, naming.Configuration(set.Spec.ControllerRef.Name)),
		}
	},
	Cluster:  func(set *slinkyv1beta1.NodeSet) string { return set.Spec.ControllerRef.Name },
	Faults:   nodeSetFaults,
	Cautions: nodeSetCautions,
	Changes:  nodeSetChanges,
}

func nodeSetFaults(set *slinkyv1beta1.NodeSet, _ Found) []Finding {
	var findings []Finding
	if _, err := nodeconf.Of(set); err != nil {
		field, cause := invalid.Split(err, "spec")
		findings = append(findings, find(field, "", "%v", cause))
	}
	if _, err := schedule.Of(set.Spec.Elastic); err != nil {
		field, cause := invalid.Split(err, "spec.elastic.schedules")
		findings = append(findings, find(field, "", "%v", cause))
	}
	if partition := set.Spec.Partition; partition.Enabled {
		if _, err := slurmconf.ParsePartition(partition.Config); err != nil {
			findings = append(findings, find("spec.partition.config", "", "%v", err))
		}
	}
	return findings
}

func nodeSetCautions(set *slinkyv1beta1.NodeSet, found Found) []Finding {
	var findings []Finding
	if set.Spec.TaintKubeNodes != nil {
		findings = append(findings, find("spec.taintKubeNodes", strconv.FormatBool(*set.Spec.TaintKubeNodes),
			"it is ignored, and Kubernetes nodes are not tainted; remove it, and taint the Kubernetes nodes yourself if "+
				"they must be kept free of other pods"))
	}
	if end, ended := windowEnded(set, found.Now); ended {
		findings = append(findings,
			find("spec.updateStrategy.scheduledUpdate.startTime",
				set.Spec.UpdateStrategy.ScheduledUpdate.StartTime.UTC().Format(time.RFC3339),
				"this window was over at %s, so that no pod is updated; set the time of the next one", end.UTC().
					Format(time.RFC3339)))
	}
	node, _ := nodeconf.Of(set) // errors are faults
	if given, most, exceeds := node.Excess(); exceeds {
		findings = append(findings, find("spec.extraConf", fmt.Sprintf("RealMemory=%d", given),
			"it is more than the memory limit of slurmd's container, and jobs that use it end slurmd and all other jobs on the "+
				"node; use at most %d, which is the limit less the reserve, or raise the limit", most))
	}
	return append(findings, nameCautions(set, found)...)
}

// nameCautions returns warnings about names that others have too.
func nameCautions(set *slinkyv1beta1.NodeSet, found Found) []Finding {
	controller := as[*slinkyv1beta1.Controller](found, ControllerKind, set.Spec.ControllerRef.Name)
	if controller == nil {
		controller = &slinkyv1beta1.Controller{}
	}
	others := slices.DeleteFunc(slices.Clone(found.NodeSets),
		func(other slinkyv1beta1.NodeSet) bool { return other.Name == set.Name })
	names := slurmNames(controller, append(others, *set))
	name, group := names[set.Name], naming.WorkerGroup(set)
	var findings []Finding
	if set.Spec.Partition.Enabled && hasPartition(controller.Spec.ExtraConf, name) {
		findings = append(findings, find("spec.partition.enabled", "true",
			"extraConf of Controller %s has a partition %s already, and slurmctld does not start with two of one "+
				"name, so no configuration is applied; remove one of them", controller.Name, name))
	}
	for i := range others {
		other := &others[i]
		switch {
		case sameHosts(set, other):
			findings = append(findings,
				find("spec.template.spec.hostname", strings.TrimSuffix(naming.WorkerHost(set, 0), "0"),
					"host names of NodeSet %s have the same prefix, and two pods cannot have the same Slurm node; choose another prefix", other.Name))
		case name == "" && names[other.Name] == set.Name:
			findings = append(findings, find("metadata.name", set.Name,
				"NodeSet %s has this name in Slurm already, after its hostname, so this one has no partition; choose "+
					"another name", other.Name))
		case group != set.Name && name == set.Name && names[other.Name] == group:
			findings = append(findings, find("spec.template.spec.hostname", group,
				"NodeSet %s has this name in Slurm, so the partition is named %s, and both NodeSets have the feature "+
					"%s; choose another prefix", other.Name, set.Name, group))
		}
	}
	return findings
}

// windowEnded reports whether, and since when, the window of a scheduled update has ended.
func windowEnded(set *slinkyv1beta1.NodeSet, now time.Time) (end time.Time, ended bool) {
	strategy := set.Spec.UpdateStrategy
	if strategy.Type != slinkyv1beta1.ScheduledUpdate || strategy.ScheduledUpdate == nil ||
		strategy.ScheduledUpdate.StartTime == nil {
		return time.Time{}, false
	}
	end = strategy.ScheduledUpdate.StartTime.Add(strategy.ScheduledUpdate.Duration.Duration)
	return end, !now.Before(end)
}

// hasPartition reports whether a configuration defines a partition.
func hasPartition(conf, name string) bool {
	document, _ := slurmconf.Parse(conf) // the review of the Controller reports errors
	for entry := range document.All() {
		if entry.Is("PartitionName") && entry.Value() == name {
			return true
		}
	}
	return false
}

// sameHosts reports whether pods of two NodeSets would have the same hostnames.
func sameHosts(a, b *slinkyv1beta1.NodeSet) bool {
	numbered := func(set *slinkyv1beta1.NodeSet) bool {
		return set.Spec.ScalingMode != slinkyv1beta1.ScalingModeDaemonSet
	}
	return numbered(a) && numbered(b) && naming.WorkerHost(a, 0) == naming.WorkerHost(b, 0)
}
