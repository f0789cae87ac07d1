package slurmconf

import (
	"slices"
	"strings"
)

// An owner explains why the operator owns a key.
type owner struct{ reason, remedy string }

// keyTable holds owned keys; lookups ignore case.
type keyTable map[string]owner

// find returns the owner of a key.
func (t keyTable) find(key string) (owner, bool) {
	for known, owner := range t {
		if strings.EqualFold(known, key) {
			return owner, true
		}
	}
	return owner{}, false
}

// contains reports whether a key is among keys, ignoring case.
func contains(keys []string, key string) bool {
	return slices.ContainsFunc(keys, func(known string) bool { return strings.EqualFold(known, key) })
}

// records are the keys of lines with further pairs.
var records = []string{"NodeName", "NodeSet", "PartitionName", "DownNodes", "FrontendName"}

func isRecord(key string) bool { return contains(records, key) }

// repeatable are the keys, besides the records, of which Slurm uses every line and not only the last one.
var repeatable = []string{"SlurmctldHost", "Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld"}

// lists are the keys whose value is an unordered list of tokens that is merged instead of replaced.
var lists = []string{
	"AccountingStorageEnforce", "AccountingStorageTRES", "AccountingStoreFlags", "AuthInfo", "BcastParameters",
	"CliFilterPlugins",
	"CommunicationParameters", "DebugFlags", "DependencyParameters", "FederationParameters", "GresTypes",
	"JobAcctGatherParams",
	"JobCompParams", "JobSubmitPlugins", "LaunchParameters", "MCSParameters", "NodeFeaturesPlugins",
	"PreemptParameters",
	"PriorityFlags", "PrivateData", "PrologFlags", "ReconfigFlags", "SchedulerParameters", "SlurmctldParameters",
	"SlurmdParameters", "StorageParameters", "SwitchParameters", "TaskPlugin", "TaskPluginParam", "TLSParameters",
	"TopologyParam",
}

const (
	fromController = "it is set from the Controller"
	fromAccounting = "it is set from the Accounting that the Controller refers to"
	fromPods       = "pods, volumes and probes depend on it"
	fromKeys       = "every daemon of the cluster must use the keys that the operator gives it"
	removeLine     = "remove the line"
)

// ownedKeys are the keys of slurm.conf that the operator owns.
var ownedKeys = keyTable{
	"ClusterName":   {fromController, "set spec.clusterName instead"},
	"SlurmctldHost": {fromController, "remove the line; spec.ha adds backups"},
	"ControlMachine": {
		"it is the older name of SlurmctldHost, which " + fromController, "remove the line; spec.ha adds backups",
	},
	"ControlAddr": {"it is the older form of SlurmctldHost, which " + fromController, removeLine},
	"BackupController": {
		"it is the older form of SlurmctldHost, which " + fromController, "remove the line; spec.ha adds backups",
	},
	"BackupAddr": {"it is the older form of SlurmctldHost, which " + fromController, removeLine},
	"SlurmctldAddr": {
		"clients find slurmctld by its Service", "remove the line; configure the Service in spec.service",
	},
	"SlurmctldPort": {"the Service and the probes depend on it", "set spec.service.port instead"},
	"SlurmdPort":    {fromPods, removeLine},
	"SlurmUser": {
		"slurmctld runs as the user that the pod gives it", "set spec.slurmUser to change its uid and gid",
	},
	"AuthType":          {fromKeys, "remove the line; spec.slurmKeyRef gives the key of auth/slurm"},
	"CredType":          {fromKeys, "remove the line; spec.slurmKeyRef gives the key"},
	"AuthAltTypes":      {fromKeys, "remove the line; spec.jwtKeyRef gives the key of auth/jwt"},
	"AuthAltParameters": {fromKeys, "remove the line; use spec.jwtKeyRef and spec.jwksKeyRef"},
	"StateSaveLocation": {
		"the volume of the saved state is mounted there", "remove the line; configure the volume in spec.persistence",
	},
	"SlurmctldPidFile":      {fromPods, removeLine},
	"SlurmdPidFile":         {fromPods, removeLine},
	"AccountingStorageType": {fromAccounting, "set spec.accountingRef instead"},
	"AccountingStorageHost": {fromAccounting, "set spec.accountingRef instead"},
	"AccountingStoragePort": {fromAccounting, "set spec.accountingRef instead"},
	"AccountingStoragePass": {"auth/slurm needs none", removeLine},
	"AccountingStorageUser": {"auth/slurm needs none", removeLine},
	"MaxNodeCount": {
		"it follows the size of the cluster and must not fall below the nodes that are registered",
		"set spec.maxNodeCount instead",
	},
	"MetricsType": {"the ServiceMonitor depends on it", "set spec.metrics.enabled instead"},
	include: {
		"the operator cannot see what the file says, nor when it changes",
		"put its lines here; other files come from spec.configFileRefs",
	},
}

// Owner returns why the operator owns a key of slurm.conf, and false if it does not.
func Owner(key string) (reason string, owned bool) {
	owner, owned := ownedKeys.find(key)
	return owner.reason, owned
}

// databaseKeys are the keys of slurmdbd.conf that the operator owns.
var databaseKeys = keyTable{
	"AuthType":          {fromKeys, "remove the line; spec.slurmKeyRef gives the key of auth/slurm"},
	"AuthAltTypes":      {fromKeys, "remove the line; spec.jwtKeyRef gives the key of auth/jwt"},
	"AuthAltParameters": {fromKeys, "remove the line; use spec.jwtKeyRef and spec.jwksKeyRef"},
	"DbdHost":           {fromPods, removeLine},
	"DbdAddr": {
		"slurmctlds find slurmdbd by its Service", "remove the line; configure the Service in spec.service",
	},
	"DbdPort":       {"the Service and the probes depend on it", "set spec.service.port instead"},
	"DbdBackupHost": {"the operator runs one slurmdbd, and Kubernetes restarts it", removeLine},
	"SlurmUser": {
		"slurmdbd runs as the user that the pod gives it", "set spec.slurmUser to change its uid and gid",
	},
	"PidFile":           {fromPods, removeLine},
	"StorageType":       {"it is set from spec.storageConfig", removeLine},
	"StorageHost":       {"it is set from spec.storageConfig", "set spec.storageConfig.host instead"},
	"StoragePort":       {"it is set from spec.storageConfig", "set spec.storageConfig.port instead"},
	"StorageUser":       {"it is set from spec.storageConfig", "set spec.storageConfig.username instead"},
	"StoragePass":       {"passwords belong in a Secret", "set spec.storageConfig.passwordKeyRef instead"},
	"StoragePassScript": {"passwords belong in a Secret", "set spec.storageConfig.passwordKeyRef instead"},
	"StorageLoc":        {"it is set from spec.storageConfig", "set spec.storageConfig.database instead"},
	include:             {"the operator cannot see what the file says, nor when it changes", "put its lines here"},
}
