package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Names of configuration files.
const (
	slurmConfFile  = slurmconf.FileName
	cgroupConfFile = "cgroup.conf"
	jwksFile       = "jwks.json"
)

// defaultCgroupConf lets slurmd run in an ordinary pod, without a cgroup tree of its own.
const defaultCgroupConf = "CgroupPlugin=disabled\n"

// maxConfiguration is what fits into a ConfigMap.
const maxConfiguration = 1 << 20

// A problem is something that a person has to mend.
type problem struct{ reason, message string }

// A candidate is a configuration as it should be.
type candidate struct {
	document slurmconf.Document
	// files are all files by their names, slurm.conf marked with the hash of all.
	files map[string]string
	hash  string
	// leaving are the partitions that the spec no longer has, and that still have jobs, or may have.
	leaving []string
	// held are the keys that the spec asks for and that a slurmd may not know.
	held []string
	// changes are what NodeSets ask for that is not in force, each of which may be what slurmctld refuses.
	changes slurmconf.Changes
	// leftOut are the NodeSets that are not in it as they ask to be, and the reasons.
	leftOut []leftOut
	// whole is the hash of the candidate that slurmctld refused for the NodeSets in refused, without whose changes this is; empty otherwise.
	whole   string
	refused []leftOut
}

// build makes the configuration that the spec asks for.
func build(scope *scope) (candidate, *problem) {
	cluster := slurmconf.Cluster{
		Name: naming.ClusterName(scope.controller), Hosts: hosts(scope.controller), Port: naming.PortSlurmctld, SlurmUser: "slurm",
		JWKS:         scope.controller.Spec.JWKSKeyRef != nil,
		JWTKeyDigest: slurmconf.KeyDigest(scope.jwtKey),
		Metrics:      metrics(scope),
		MaxNodeCount: maxNodeCount(scope),
		ExtraConf:    scope.controller.Spec.ExtraConf,
	}
	if accounting := scope.accounting; accounting != nil {
		cluster.Accounting = accountingEndpoint(accounting)
	}
	files := map[string]string{cgroupConfFile: defaultCgroupConf}
	contributed := contributions(scope)
	cluster.NodeSets, cluster.GresTypes, cluster.Contain = contributed.sets, contributed.gresTypes, contributed.contain
	if contributed.devices {
		files[slurmconf.GresFile] = slurmconf.IncludePodGres
		files[slurmconf.PodGresFile] = ""
	}
	for _, group := range []struct {
		files []referenced
		names *[]string
	}{
		{scope.configFiles, nil},
		{scope.prolog, &cluster.Prolog},
		{scope.epilog, &cluster.Epilog},
		{scope.prologSlurmctld, &cluster.PrologSlurmctld},
		{scope.epilogSlurmctld, &cluster.EpilogSlurmctld},
	} {
		if problem := collect(files, group.files, group.names); problem != nil {
			return candidate{}, problem
		}
	}
	if cluster.JWKS {
		files[jwksFile] = scope.jwks
	}
	document, err := slurmconf.Build(cluster)
	if err != nil {
		return candidate{}, &problem{slinkyv1beta1.ReasonInvalidSpec, "spec.extraConf: " + err.Error()}
	}
	document, held := holdBack(scope, document)
	document, leaving := keepPartitions(scope, document)
	sealed, problem := seal(document, files)
	sealed.leaving, sealed.held, sealed.leftOut = leaving, held, contributed.leftOut
	sealed.changes = slurmconf.ChangesOf(sealed.document, scope.inForce(), contributed.sets)
	return sealed, problem
}

// seal adds slurm.conf to the files and marks it with the hash of all.
func seal(document slurmconf.Document, files map[string]string) (candidate, *problem) {
	files[slurmConfFile] = document.Render()
	hash := slurmconf.Hash(files)
	document = slurmconf.WithHash(document, hash)
	files[slurmConfFile] = document.Render()
	size := 0
	for name, content := range files {
		size += len(name) + len(content)
	}
	if size > maxConfiguration {
		return candidate{}, &problem{slinkyv1beta1.ReasonInvalidSpec, fmt.Sprintf(
			"the configuration files have %d bytes together, and a ConfigMap holds %d; put large scripts into the image", size, maxConfiguration)}
	}
	return candidate{document: document, files: files, hash: hash}, nil
}

// A referenced file is one value of a ConfigMap that the spec names.
type referenced struct{ name, content, from string }

// collect adds files and their names, and refuses two of one name and those that the operator writes.
func collect(files map[string]string, more []referenced, names *[]string) *problem {
	for _, file := range more {
		content, taken := files[file.name]
		switch {
		case file.name == slurmConfFile || file.name == jwksFile || file.name == slurmconf.ChangesFile || file.name == slinkyv1beta1.SlurmKeyFile || file.name == slinkyv1beta1.JWTKeyFile:
			return &problem{slinkyv1beta1.ReasonInvalidSpec, fmt.Sprintf(
				"ConfigMap %s has a file %s, which the operator writes; remove it, and use spec.extraConf for lines of slurm.conf", file.from, file.name)}
		case taken && content != defaultCgroupConf && content != slurmconf.IncludePodGres:
			return &problem{slinkyv1beta1.ReasonInvalidSpec, fmt.Sprintf(
				"ConfigMap %s has a file %s, and so has another ConfigMap that the spec names; rename one of them", file.from, file.name)}
		}
		files[file.name] = file.content
		if names != nil {
			*names = append(*names, file.name)
		}
	}
	return nil
}

// buildExternal makes the reduced configuration for an external slurmctld: what clients need to reach it.
func buildExternal(scope *scope) (candidate, *problem) {
	external := scope.controller.Spec.ExternalConfig
	cluster := slurmconf.Cluster{
		Name: naming.ClusterName(scope.controller), Hosts: []slurmconf.Host{{Name: external.Host}},
		Port: int(cmp.Or(external.Port, naming.PortSlurmctld)), SlurmUser: "slurm", MaxNodeCount: maxNodeCount(scope),
	}
	if accounting := scope.accounting; accounting != nil {
		cluster.Accounting = accountingEndpoint(accounting)
	}
	document, err := slurmconf.Build(cluster)
	if err != nil {
		return candidate{}, &problem{slinkyv1beta1.ReasonInvalidSpec, err.Error()}
	}
	return seal(slurmconf.Clients(document), map[string]string{})
}

// hosts are the slurmctlds, each under the name of its pod. In every other pod that is the name of the Service in front of it,
// which has an address also while the pod has none; in the pod itself it is the pod's own address, so that a slurmctld and what
// runs beside it need no way out and in again.
func hosts(controller *slinkyv1beta1.Controller) []slurmconf.Host {
	var hosts []slurmconf.Host
	for _, pod := range naming.ControllerPods(controller) {
		hosts = append(hosts, slurmconf.Host{Name: pod})
	}
	return hosts
}

func accountingEndpoint(accounting *slinkyv1beta1.Accounting) *slurmconf.Endpoint {
	if accounting.Spec.External {
		return &slurmconf.Endpoint{
			Host: accounting.Spec.ExternalConfig.Host, Port: int(cmp.Or(accounting.Spec.ExternalConfig.Port, naming.PortSlurmdbd)),
		}
	}
	return &slurmconf.Endpoint{Host: naming.Accounting(accounting.Name) + "." + accounting.Namespace, Port: int(accounting.Spec.Service.Port)}
}

// maxNodeCount follows the size of the cluster.
func maxNodeCount(scope *scope) int {
	desired := 0
	for _, set := range scope.nodeSets {
		if set.Spec.ScalingMode == slinkyv1beta1.ScalingModeDaemonSet {
			desired += int(set.Status.Desired)
		} else if set.Spec.Replicas != nil {
			desired += int(*set.Spec.Replicas)
		}
	}
	live := 0
	if nodes := scope.controller.Status.Nodes; nodes != nil {
		live = int(nodes.Total)
	}
	current := 0
	if scope.promoted != nil {
		value, _ := scope.promoted.document().Get("MaxNodeCount")
		current, _ = strconv.Atoi(value) // the operator wrote it
	}
	return slurmconf.MaxNodeCount(desired, live, current, scope.controller.Spec.MaxNodeCount)
}

// imageOf is the image that a fragment of a container asks for, or another.
func imageOf(fragment slinkyv1beta1.ContainerFragment, otherwise string) string {
	var container struct {
		Image string `json:"image"`
	}
	if fragment.IsZero() || json.Unmarshal(fragment.Raw, &container) != nil || container.Image == "" {
		return otherwise
	}
	return container.Image
}

// sortedFiles are the files of a ConfigMap in the order of their names.
func sortedFiles(from string, data map[string]string) []referenced {
	files := make([]referenced, 0, len(data))
	for _, name := range slices.Sorted(maps.Keys(data)) {
		files = append(files, referenced{name, data[name], from})
	}
	return files
}
