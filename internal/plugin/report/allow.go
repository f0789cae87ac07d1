package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// A rule says what is kept of a value.
type rule interface {
	// keep returns what is kept of a value; nil for nothing.
	keep(value any) any
}

// all keeps a value that cannot contain a secret: numbers, quantities, names, conditions.
type all struct{}

func (all) keep(value any) any { return value }

// fields keeps the named fields of an object.
type fields map[string]rule

func (f fields) keep(value any) any {
	object, is := value.(map[string]any)
	if !is {
		return nil
	}
	kept := map[string]any{}
	for name, inner := range object {
		if rule, known := f[name]; known {
			if left := rule.keep(inner); left != nil {
				kept[name] = left
			}
		}
	}
	return kept
}

// each keeps a part of each element of a list.
type each struct{ rule }

func (e each) keep(value any) any {
	list, is := value.([]any)
	if !is {
		return nil
	}
	kept := make([]any, 0, len(list))
	for _, element := range list {
		if left := e.rule.keep(element); left != nil {
			kept = append(kept, left)
		}
	}
	return kept
}

// keys keeps the keys of an object, with the sizes of their values.
type keys struct{}

func (keys) keep(value any) any {
	object, is := value.(map[string]any)
	if !is {
		return nil
	}
	kept := map[string]any{}
	for name, inner := range object {
		kept[name] = fmt.Sprintf("(%d bytes)", len(fmt.Sprint(inner)))
	}
	return kept
}

// annotations keeps the operator's own annotations. Others may contain anything, such as a whole object with its
// secrets.
type annotations struct{}

func (annotations) keep(value any) any {
	object, is := value.(map[string]any)
	if !is {
		return nil
	}
	kept := map[string]any{}
	for name, inner := range object {
		if domain, _, _ := strings.Cut(name, "/"); domain == slinkyv1beta1.GroupName ||
			strings.HasSuffix(domain, "."+slinkyv1beta1.GroupName) {
			kept[name] = inner
		}
	}
	return kept
}

// names keeps some fields as they are.
func names(list ...string) fields {
	kept := fields{}
	for _, name := range list {
		kept[name] = all{}
	}
	return kept
}

// with adds rules to fields.
func (f fields) with(more fields) fields {
	joined := maps.Clone(f)
	maps.Copy(joined, more)
	return joined
}

var (
	metadata = names("name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp", "finalizers",
		"labels", "ownerReferences").with(fields{"annotations": annotations{}})
	// variables are environment variables without their values, which may be anything.
	variables = each{names("name")}
	volumes   = each{names("name", "persistentVolumeClaim", "emptyDir").with(fields{
		"configMap": names("name", "optional"), "secret": names("secretName", "optional"), "hostPath": names("path", "type"),
		"projected": fields{}, "csi": names("driver"), "nfs": names("server", "path"),
	})}
	container = names("name", "image", "imagePullPolicy", "resources", "ports", "volumeMounts", "securityContext",
		"restartPolicy", "terminationMessagePolicy").with(fields{"env": variables})
	podSpec = names("nodeName", "hostname", "subdomain", "nodeSelector", "affinity", "tolerations", "runtimeClassName",
		"priorityClassName", "serviceAccountName", "securityContext", "dnsPolicy", "hostNetwork", "restartPolicy",
		"terminationGracePeriodSeconds", "topologySpreadConstraints", "schedulerName").with(fields{
		"containers": each{container}, "initContainers": each{container}, "volumes": volumes,
	})
	template = fields{"metadata": fields{"labels": all{}, "annotations": annotations{}}, "spec": podSpec}
	// references of specs name objects, and have no content.
	shared = names("controllerRef", "accountingRef", "replicas", "external", "externalConfig", "slurmKeyRef", "jwtKeyRef",
		"jwtHs256KeyRef", "jwksKeyRef", "slurmUser").with(fields{"template": template, "logfile": container})
	clusterSpec = shared.with(names("clusterName", "ha", "configFileRefs", "prologScriptRefs", "epilogScriptRefs",
		"prologSlurmctldScriptRefs", "epilogSlurmctldScriptRefs", "persistence", "maxNodeCount", "configurationTrial",
		"jobConfinement", "inplaceReconfigure", "metrics", "extraConf")).with(fields{
		"slurmctld": container, "reconfigure": container, "service": fields{"port": all{}},
	})
	nodeSetSpec = shared.with(names("scalingMode", "extraConf", "partition", "updateStrategy", "revisionHistoryLimit",
		"persistentVolumeClaimRetentionPolicy", "minReadySeconds", "ordinalPadding", "pinToNode",
		"workloadDisruptionProtection", "pruneSlurmNodeRecords", "oversubscribeNode", "registrationTimeout",
		"drainOnNodeConditions", "drainOnNodeTaints", "nodeLabels", "gres", "cgroupAccess", "reservedMemory",
		"elastic")).with(fields{
		"slurmd": container, "ssh": names("enabled", "sssdConfRef"),
	})
	status = fields{"metadata": metadata, "status": all{}}
)

// allowed are the kinds that are in a report, with the fields that are kept.
var allowed = map[string]fields{
	"Controller": status.with(fields{"spec": clusterSpec}),
	"NodeSet":    status.with(fields{"spec": nodeSetSpec}),
	"LoginSet": status.with(fields{"spec": shared.with(fields{
		"login": container, "sssdConfRef": all{}, "strategy": all{},
	})}),
	"RestApi": status.with(fields{"spec": shared.with(fields{"slurmrestd": container})}),
	"Accounting": status.with(fields{"spec": shared.with(fields{
		"slurmdbd": container, "extraConf": all{}, "storageConfig": names("host", "port", "database", "passwordKeyRef"),
	})}),
	"Token": status.with(fields{"spec": names("username", "lifetime", "refresh", "jwtKeyRef", "jwtHs256KeyRef",
		"secretRef")}),
	"Pod":        status.with(fields{"spec": podSpec}),
	"Deployment": status.with(fields{"spec": fields{"replicas": all{}, "template": template}}),
	"Event": fields{"metadata": names("namespace", "name", "creationTimestamp")}.with(names("regarding", "related",
		"reason", "note", "type", "action", "eventTime", "series", "reportingController", "deprecatedCount",
		"deprecatedFirstTimestamp", "deprecatedLastTimestamp")),
	"PodDisruptionBudget":   status.with(fields{"spec": all{}}),
	"ResourceQuota":         status.with(fields{"spec": all{}}),
	"PersistentVolumeClaim": status.with(fields{"spec": all{}}),
	"Node": {
		"metadata": names("name", "labels", "creationTimestamp"), "spec": names("unschedulable", "taints"),
		"status": names("conditions", "capacity", "allocatable", "nodeInfo"),
	},
}

// Kinds returns the kinds that are in a report.
func Kinds() []string {
	var kinds []string
	for kind := range allowed {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// configurationFiles are the files of the operator's ConfigMaps that are kept. All others, such as scripts of users,
// are listed with their size.
var configurationFiles = []string{
	"slurm.conf", "cgroup.conf", "gres.conf", "topology.conf", "topology.yaml", "sshd_config",
}

// configMap returns what is kept of a ConfigMap.
func configMap(object Object) Object {
	kept := map[string]any{"kind": "ConfigMap", "metadata": metadata.keep(object["metadata"])}
	data, _ := object["data"].(map[string]any)
	files, _ := keys{}.keep(data).(map[string]any)
	for name := range files {
		if slices.Contains(configurationFiles, name) {
			files[name] = data[name]
		}
	}
	kept["data"] = files
	return kept
}
