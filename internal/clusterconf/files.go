package clusterconf

import (
	"fmt"
	"maps"
	"slices"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Names of configuration files.
const (
	CgroupFile = slurmconf.CgroupFile
	JWKSFile   = "jwks.json"
)

// managedFiles are the files that only the operator writes.
var managedFiles = []string{
	slurmconf.FileName, JWKSFile, slurmconf.ChangesFile, slinkyv1beta1.SlurmKeyFile, slinkyv1beta1.JWTKeyFile,
	CleanFile, slurmconf.PodCgroupFile,
}

// A Use is the purpose of files.
type Use uint8

// The uses of files.
const (
	ConfigFile Use = iota
	Prolog
	Epilog
	PrologSlurmctld
	EpilogSlurmctld
)

// A Group is a field of a Controller that references ConfigMaps, whose values become files.
type Group struct {
	Use
	// Field is the path of the field.
	Field      string
	References []slinkyv1beta1.ObjectReference
}

// Groups returns all groups of a Controller.
func Groups(controller *slinkyv1beta1.Controller) []Group {
	spec := &controller.Spec
	return []Group{
		{ConfigFile, "spec.configFileRefs", spec.ConfigFileRefs},
		{Prolog, "spec.prologScriptRefs", spec.PrologScriptRefs},
		{Epilog, "spec.epilogScriptRefs", spec.EpilogScriptRefs},
		{PrologSlurmctld, "spec.prologSlurmctldScriptRefs", spec.PrologSlurmctldScriptRefs},
		{EpilogSlurmctld, "spec.epilogSlurmctldScriptRefs", spec.EpilogSlurmctldScriptRefs},
	}
}

// A File is a value of a ConfigMap.
type File struct{ Name, Content, ConfigMap string }

// FilesOf returns the files of a ConfigMap, sorted by name.
func FilesOf(configMap string, data map[string]string) []File {
	files := make([]File, 0, len(data))
	for _, name := range slices.Sorted(maps.Keys(data)) {
		files = append(files, File{name, data[name], configMap})
	}
	return files
}

// Files are the files of a configuration by name. They are in one directory.
type Files map[string]string

// NewFiles returns the files that every cluster has and, with devices for GRES, those that describe them. The user's
// files may replace them. slurmctld itself uses no cgroups.
func NewFiles(devices bool) Files {
	files := Files{CgroupFile: slurmconf.CgroupsDisabled, slurmconf.PodCgroupFile: slurmconf.CgroupsDisabled}
	if devices {
		files[slurmconf.GresFile] = slurmconf.IncludePodGres
		files[slurmconf.PodGresFile] = ""
	}
	return files
}

// AddDevices describes the devices of elastic nodes to slurmctld, unless the user's gres.conf does.
func (f Files) AddDevices(records []slurmconf.Record) {
	if _, ours := f[slurmconf.PodGresFile]; ours {
		f[slurmconf.PodGresFile] = slurmconf.RecordDevices(records, DeviceDirectory)
	}
}

// DeviceDirectory is where the devices of a pod are linked, for gres.conf.
const DeviceDirectory = "/run/slurm/devices"

// Add adds a file of the user. It rejects files that the operator writes and duplicate names.
func (f Files) Add(file File) error {
	content, taken := f[file.Name]
	switch {
	case slices.Contains(managedFiles, file.Name):
		return fmt.Errorf(
			"ConfigMap %s has a file %s, which the operator writes; remove it, and use spec.extraConf for lines of "+
				"slurm.conf",
			file.ConfigMap, file.Name)
	case taken && !IsOwnCgroupConf(content) && content != slurmconf.IncludePodGres:
		return fmt.Errorf(
			"ConfigMap %s has a file %s, and so has another ConfigMap that the spec names; rename one of them", file.ConfigMap, file.Name)
	}
	f[file.Name] = file.Content
	return nil
}

// AddScripts adds files to slurm.conf by name, if they are scripts.
func AddScripts(cluster *slurmconf.Cluster, use Use, files []File) {
	scripts := map[Use]*[]string{
		Prolog: &cluster.Prolog, Epilog: &cluster.Epilog, PrologSlurmctld: &cluster.PrologSlurmctld,
		EpilogSlurmctld: &cluster.EpilogSlurmctld,
	}[use]
	if scripts == nil {
		return
	}
	for _, file := range files {
		*scripts = append(*scripts, file.Name)
	}
}
