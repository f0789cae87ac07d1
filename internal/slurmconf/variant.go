package slurmconf

import (
	"slices"
	"strconv"
	"strings"
)

// ValidationOptions describe the environment of a throwaway slurmctld.
type ValidationOptions struct {
	// Host is the name of the host that it runs on, which slurmctld compares with its own. It must have an address
	// other than loopback: slurmctld does not start otherwise.
	Host string
	// Port is the port to listen on; 0 keeps the configured one.
	Port int
	// Directory holds the configuration, scripts and keys to validate, instead of /etc/slurm.
	Directory string
	// State is an empty directory for its state, and PidFile its PID file.
	State, PidFile string
}

// validationDrops are the parameters that affect or need something outside of a throwaway slurmctld.
var validationDrops = []string{
	"SlurmctldAddr", "SlurmctldPrimaryOnProg", "SlurmctldPrimaryOffProg", "SlurmctldLogFile", "SlurmSchedLogFile",
	"MailProg",
	"SuspendProgram", "ResumeProgram", "ResumeFailProgram", "SuspendTime", "FederationParameters",
	"JobCompType", "JobCompHost", "JobCompLoc", "JobCompParams", "JobCompPass", "JobCompPassScript", "JobCompPort",
	"JobCompUser",
}

// accountingDrops are the parameters, besides those of AccountingStorage itself, that slurmctld refuses or complains
// about without slurmdbd: they refer to the database.
var accountingDrops = []string{
	"PriorityWeightFairshare", "PriorityWeightTRES", "PriorityWeightQOS", "PriorityWeightAssoc",
}

// partitionAccountingDrops are those of a partition.
var partitionAccountingDrops = []string{"QOS", "AllowQos", "DenyQos", "TRESBillingWeights"}

// ForValidation returns the variant of a configuration for a validation run of a throwaway slurmctld. It keeps
// everything that can be wrong, and leaves out everything that would affect something real: accounting, the other
// slurmctlds, programs, log files, and the addresses of static nodes. If the cluster has no accounting, parameters that
// need it stay, because slurmctld would refuse them in production too.
func ForValidation(d Document, options ValidationOptions) Document {
	_, accounting := d.Get("AccountingStorageType")
	variant := d.filter(func(entry Entry) bool {
		key := entry.Key()
		return !entry.Is("SlurmctldHost") && !contains(validationDrops, key) && (!accounting || !needsAccounting(key))
	})
	for i, entry := range variant.entries {
		switch {
		case entry.Is("PartitionName") && accounting:
			variant.entries[i].Pairs = withoutPairs(entry.Pairs, partitionAccountingDrops)
		case entry.Is("NodeName") && !strings.EqualFold(entry.Value(), "DEFAULT"):
			variant.entries[i].Pairs = withoutAddresses(entry)
		case entry.Is("PrologSlurmctld"), entry.Is("EpilogSlurmctld"), entry.Is("AuthAltParameters"):
			moved := strings.ReplaceAll(entry.Value(), Directory+"/", options.Directory+"/")
			variant.entries[i].Pairs = []Pair{{entry.Key(), moved}}
		}
	}
	variant.Append(Pair{"SlurmctldHost", options.Host})
	if options.Port != 0 {
		variant.Set("SlurmctldPort", strconv.Itoa(options.Port))
	}
	variant.Set("StateSaveLocation", options.State)
	variant.Set("SlurmctldPidFile", options.PidFile)
	return inSections(variant)
}

// withoutAddresses returns the pairs of nodes with the address of this host instead of their own: Slurm accepts one
// address for all nodes of a line, and spends eleven seconds on each name that it cannot resolve. It refuses another
// number of addresses, so that stays.
func withoutAddresses(entry Entry) []Pair {
	for _, pair := range entry.Pairs {
		if strings.EqualFold(pair.Key, "NodeAddr") {
			if addresses := countNames(pair.Value); addresses != 1 && addresses != countNames(entry.Value()) {
				return entry.Pairs
			}
		}
	}
	return slices.Insert(withoutPairs(entry.Pairs, []string{"NodeAddr"}), 1, Pair{"NodeAddr", "127.0.0.1"})
}

func needsAccounting(key string) bool {
	const prefix = "AccountingStorage"
	return len(key) >= len(prefix) && strings.EqualFold(key[:len(prefix)], prefix) || contains(accountingDrops, key)
}

// withoutPairs returns a copy of the pairs without some keys.
func withoutPairs(pairs []Pair, keys []string) []Pair {
	return slices.DeleteFunc(slices.Clone(pairs), func(pair Pair) bool { return contains(keys, pair.Key) })
}

// clientKeys are what a client needs to find slurmctld, to authenticate and to understand its answers.
var clientKeys = []string{
	"ClusterName", "SlurmctldHost", "SlurmctldPort", "SlurmdPort", "SlurmUser",
	"AuthType", "AuthInfo", "AuthAltTypes", "AuthAltParameters", "CredType", "HashPlugin", "TLSType", "TLSParameters",
	"AccountingStorageType", "AccountingStorageHost", "AccountingStorageBackupHost", "AccountingStoragePort",
	"CommunicationParameters", "MessageTimeout", "TCPTimeout", "SlurmctldTimeout",
	"PluginDir", "SelectType", "SelectTypeParameters", "GresTypes", "SwitchType", "MaxArraySize",
	"FederationParameters",
}

// Clients returns the part of a configuration that slurmrestd needs, which changes far less often than the whole.
func Clients(d Document) Document {
	return d.filter(func(entry Entry) bool { return contains(clientKeys, entry.Key()) })
}
