package slurmconf

import (
	"slices"
	"strconv"
	"strings"
)

// TrialOptions say where a throwaway slurmctld lives.
type TrialOptions struct {
	// Host is the name of the host that it runs on, which slurmctld compares with its own. It must have an address other
	// than that of the loopback device: slurmctld does not start otherwise.
	Host string
	// Port is where it listens; 0 leaves the port as it is.
	Port int
	// Directory holds the configuration, scripts and keys to be tried, in place of /etc/slurm.
	Directory string
	// State is an empty directory for its state, and PidFile the file for its process number.
	State, PidFile string
}

// trialDrops are the parameters that reach outside of a throwaway slurmctld, or need something outside of it.
var trialDrops = []string{
	"SlurmctldAddr", "SlurmctldPrimaryOnProg", "SlurmctldPrimaryOffProg", "SlurmctldLogFile", "SlurmSchedLogFile", "MailProg",
	"SuspendProgram", "ResumeProgram", "ResumeFailProgram", "SuspendTime", "FederationParameters",
	"JobCompType", "JobCompHost", "JobCompLoc", "JobCompParams", "JobCompPass", "JobCompPassScript", "JobCompPort", "JobCompUser",
}

// accountingDrops are the parameters, besides those of AccountingStorage itself, that slurmctld refuses or complains about
// without slurmdbd: what they name is in the database.
var accountingDrops = []string{"PriorityWeightFairshare", "PriorityWeightTRES", "PriorityWeightQOS", "PriorityWeightAssoc"}

// partitionAccountingDrops are those of a partition.
var partitionAccountingDrops = []string{"QOS", "AllowQos", "DenyQos", "TRESBillingWeights"}

// Trial returns the variant of a configuration that a throwaway slurmctld can start with. It keeps whatever can be wrong,
// and leaves out what would touch anything real: accounting, the other slurmctlds, programs, log files, and the addresses of
// static nodes. Without accounting nothing that needs it is left out, because slurmctld would refuse that in earnest too.
func Trial(d Document, options TrialOptions) Document {
	_, accounting := d.Get("AccountingStorageType")
	trial := d.filter(func(entry Entry) bool {
		key := entry.Key()
		return !entry.Is("SlurmctldHost") && !contains(trialDrops, key) && (!accounting || !needsAccounting(key))
	})
	for i, entry := range trial.entries {
		switch {
		case entry.Is("PartitionName") && accounting:
			trial.entries[i].Pairs = withoutPairs(entry.Pairs, partitionAccountingDrops)
		case entry.Is("NodeName") && !strings.EqualFold(entry.Value(), "DEFAULT"):
			// Slurm takes one address for all nodes of a line, and spends eleven seconds on each name that it cannot resolve.
			pairs := withoutPairs(entry.Pairs, []string{"NodeAddr"})
			trial.entries[i].Pairs = slices.Insert(pairs, 1, Pair{"NodeAddr", "127.0.0.1"})
		case entry.Is("PrologSlurmctld"), entry.Is("EpilogSlurmctld"), entry.Is("AuthAltParameters"):
			moved := strings.ReplaceAll(entry.Value(), Directory+"/", options.Directory+"/")
			trial.entries[i].Pairs = []Pair{{entry.Key(), moved}}
		}
	}
	trial.Append(Pair{"SlurmctldHost", options.Host})
	if options.Port != 0 {
		trial.Set("SlurmctldPort", strconv.Itoa(options.Port))
	}
	trial.Set("StateSaveLocation", options.State)
	trial.Set("SlurmctldPidFile", options.PidFile)
	return inSections(trial)
}

func needsAccounting(key string) bool {
	const prefix = "AccountingStorage"
	return len(key) >= len(prefix) && strings.EqualFold(key[:len(prefix)], prefix) || contains(accountingDrops, key)
}

// withoutPairs returns a copy of the pairs but for some keys.
func withoutPairs(pairs []Pair, keys []string) []Pair {
	return slices.DeleteFunc(slices.Clone(pairs), func(pair Pair) bool { return contains(keys, pair.Key) })
}

// clientKeys are what a client needs to find slurmctld, to be believed by it and to understand its answers.
var clientKeys = []string{
	"ClusterName", "SlurmctldHost", "SlurmctldPort", "SlurmdPort", "SlurmUser",
	"AuthType", "AuthInfo", "AuthAltTypes", "AuthAltParameters", "CredType", "HashPlugin", "TLSType", "TLSParameters",
	"AccountingStorageType", "AccountingStorageHost", "AccountingStorageBackupHost", "AccountingStoragePort",
	"CommunicationParameters", "MessageTimeout", "TCPTimeout", "SlurmctldTimeout",
	"PluginDir", "SelectType", "SelectTypeParameters", "GresTypes", "SwitchType", "MaxArraySize", "FederationParameters",
}

// Clients returns what slurmrestd needs of a configuration, which changes far less often than the whole.
func Clients(d Document) Document {
	return d.filter(func(entry Entry) bool { return contains(clientKeys, entry.Key()) })
}
