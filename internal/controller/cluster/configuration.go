package cluster

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// maxConfiguration is the maximum size of a ConfigMap in bytes.
const maxConfiguration = 1 << 20

// A candidate is a desired configuration.
type candidate struct {
	document slurmconf.Document
	// files are all files by name; slurm.conf contains the hash over all of them.
	files map[string]string
	hash  string
	// leaving are partitions that were removed from the spec and may still have jobs.
	leaving []string
	// held are keys of the spec that are held back because a slurmd may not know them.
	held []string
	// waiting are keys that are kept as they are in force until no job runs, and waitingNodes the Slurm nodes whose lines
	// are.
	waiting      []string
	waitingNodes slurmconf.WaitingNodes
	// keepsJobCount is true if MaxJobCount is kept as it is in force because of the number of jobs.
	keepsJobCount bool
	// closedBefore are the hashes of the configurations one of which follows this one, with which no job starts;
	// openStates are the states of partitions in them, and change is the one to validate in place of this one.
	closedBefore []string
	openStates   map[string]string
	change       *candidate
	// changes are the changes by NodeSets that are not in force yet, any of which slurmctld may refuse.
	changes slurmconf.Changes
	// awaitsRecords is true if records of elastic nodes cannot be as wanted before nodes are drained.
	awaitsRecords bool
	// names are the names of NodeSets in it, by those of the custom resources.
	names map[string]string
	// leftOut are the NodeSets whose changes are left out, with the reasons.
	leftOut []leftOut
	// refusedHash is the hash of the candidate that slurmctld refused because of the NodeSets in refused; this one is
	// without their changes. Empty if nothing was refused.
	refusedHash string
	refused     []leftOut
}

// isProvisional reports whether another configuration follows once something has ended that causes no event.
func (c candidate) isProvisional() bool {
	return len(c.held) > 0 || len(c.leaving) > 0 || len(c.waiting) > 0 || len(c.closedBefore) > 0 ||
		c.keepsJobCount || c.awaitsRecords
}

// build builds the configuration that the spec describes.
func build(scope *scope) (candidate, *status.Verdict) {
	contributed := contributions(scope)
	cluster := clusterconf.Of(scope.controller, scope.accounting)
	cluster.JWTKeyDigest = slurmconf.KeyDigest(scope.jwtKey)
	cluster.Metrics = metrics(scope)
	cluster.MaxNodeCount = maxNodeCount(scope)
	cluster.NodeSets, cluster.GresTypes = contributed.sets, contributed.gresTypes
	cluster.Contain, cluster.Confined = scope.contains(contributed), scope.confines()
	var awaitsRecords bool
	cluster.Records, awaitsRecords = settleRecords(scope, contributed.leftOut)
	if len(cluster.Records) > 0 {
		cluster.PowerSaving = clusterconf.PowerSaving(scope.nodeSets, scope.inForce())
	}
	devices := contributed.devices || slurmconf.RecordDevices(cluster.Records, clusterconf.DeviceDirectory) != ""
	files := clusterconf.NewFiles(devices)
	files[clusterconf.CgroupFile] = scope.cgroupConf()
	files.AddDevices(cluster.Records)
	for _, group := range clusterconf.Groups(scope.controller) {
		for _, file := range scope.files[group.Use] {
			if err := files.Add(file); err != nil {
				return candidate{}, status.Problem(slinkyv1beta1.ReasonInvalidSpec, "%s", err.Error())
			}
		}
		clusterconf.AddScripts(&cluster, group.Use, scope.files[group.Use])
	}
	if cluster.JWKS {
		files[clusterconf.JWKSFile] = scope.jwks
	}
	document, err := slurmconf.Build(cluster)
	if err != nil {
		return candidate{}, status.Problem(slinkyv1beta1.ReasonInvalidSpec, "%s", "spec.extraConf: "+err.Error())
	}
	document = slurmconf.WithoutNodes(document, isLeft(cluster.Records))
	if scope.keepsForeignCgroups() {
		document = keepForeignCgroups(scope.promoted, document, files)
	}
	document, held := holdBack(scope, document)
	document, keepsJobCount := keepMaxJobCount(scope, document)
	wanted, problem := complete(scope, document, files)
	if problem != nil {
		return candidate{}, problem
	}
	next, problem := keepForJobs(scope, wanted, document, files)
	if problem != nil {
		return candidate{}, problem
	}
	if len(contributed.leftOut) == 0 || scope.promoted.isClosed() {
		next, problem = nextStep(scope, wanted, next)
	}
	next.keepsJobCount = keepsJobCount
	next.held, next.leftOut, next.names, next.awaitsRecords = held, contributed.leftOut, contributed.names, awaitsRecords
	if len(next.closedBefore) == 0 {
		next.changes = slurmconf.ChangesOf(next.document, scope.inForce(), contributed.sets, cluster.Records)
	}
	return next, problem
}

// complete adds to a document what depends on the rest of it, and seals it.
func complete(scope *scope, document slurmconf.Document, files clusterconf.Files) (candidate, *status.Verdict) {
	files = maps.Clone(files)
	document = clusterconf.AddClean(document, files)
	document, leaving := keepPartitions(scope, document)
	sealed, problem := seal(document, files)
	sealed.leaving = leaving
	return sealed, problem
}

// seal adds slurm.conf to the files, with the hash over all of them.
func seal(document slurmconf.Document, files map[string]string) (candidate, *status.Verdict) {
	files[slurmconf.FileName] = document.Render()
	hash := slurmconf.Hash(files)
	document = slurmconf.WithHash(document, hash)
	files[slurmconf.FileName] = document.Render()
	size, largest := 0, slurmconf.FileName
	for _, name := range slices.Sorted(maps.Keys(files)) {
		size += len(name) + len(files[name])
		if len(files[name]) > len(files[largest]) {
			largest = name
		}
	}
	if size > maxConfiguration {
		return candidate{}, status.Problem(slinkyv1beta1.ReasonInvalidSpec,
			"the configuration files have %d bytes together, of which %s has %d, and a ConfigMap holds %d; make it shorter, or put "+
				"large scripts into the image", size, largest, len(files[largest]), maxConfiguration)
	}
	return candidate{document: document, files: files, hash: hash}, nil
}

// buildExternal builds the reduced configuration that clients need to reach an external slurmctld.
func buildExternal(scope *scope) (candidate, *status.Verdict) {
	cluster := clusterconf.OfExternal(scope.controller, scope.accounting)
	cluster.MaxNodeCount = maxNodeCount(scope)
	document, err := slurmconf.Build(cluster)
	if err != nil {
		return candidate{}, status.Problem(slinkyv1beta1.ReasonInvalidSpec, "%s", err.Error())
	}
	return seal(slurmconf.Clients(document), map[string]string{})
}

// maxNodeCount derives MaxNodeCount from the size of the cluster.
func maxNodeCount(scope *scope) int {
	inForce := 0
	if scope.promoted != nil {
		value, _ := scope.promoted.document().Get("MaxNodeCount")
		inForce, _ = strconv.Atoi(value) // the operator wrote it
	}
	return clusterconf.MaxNodeCount(scope.controller, scope.nodeSets, inForce)
}

// imageOf returns the image in a container fragment, or otherwise if it has none.
func imageOf(fragment slinkyv1beta1.ContainerFragment, otherwise string) string {
	var container struct {
		Image string `json:"image"`
	}
	if fragment.IsZero() || json.Unmarshal(fragment.Raw, &container) != nil || container.Image == "" {
		return otherwise
	}
	return container.Image
}
