package slurmconf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The paths of the daemons' files. Pods mount volumes there.
const (
	// Directory holds configuration files, scripts and keys.
	Directory = "/etc/slurm"
	// StateSaveLocation is where slurmctld saves its state.
	StateSaveLocation = "/var/spool/slurmctld"
	// SlurmdSpoolDir is the default directory for slurmd's state and job scripts.
	SlurmdSpoolDir = "/var/spool/slurmd"
	// SlurmctldPidFile, SlurmdPidFile and SlurmdbdPidFile are the PID files.
	SlurmctldPidFile = "/run/slurmctld/slurmctld.pid"
	SlurmdPidFile    = "/run/slurm/slurmd.pid"
	SlurmdbdPidFile  = "/run/slurmdbd/slurmdbd.pid"
	// DatabaseCAFile has the CAs of the database server, and the other two the certificate and key that slurmdbd
	// presents to it.
	DatabaseCAFile          = Directory + "/database-ca.crt"
	DatabaseCertificateFile = Directory + "/database.crt"
	DatabaseKeyFile         = Directory + "/database.key"
	// JWTKeyFile and JWKSFile hold the keys of auth/jwt.
	JWTKeyFile = Directory + "/jwt_hs256.key"
	JWKSFile   = Directory + "/jwks.json"
)

// SlurmdPort is the port that slurmd listens on.
const SlurmdPort = 6818

// A Cluster holds everything that slurm.conf is generated from.
type Cluster struct {
	// Name is the ClusterName.
	Name string
	// Hosts are the slurmctlds, the primary first.
	Hosts []Host
	// Port is the port that slurmctld listens on.
	Port int
	// SlurmUser is the user that slurmctld runs as.
	SlurmUser string
	// Accounting is the address of slurmdbd; nil without accounting.
	Accounting *Endpoint
	// JWKS adds a set of further keys for auth/jwt.
	JWKS bool
	// JWTKeyDigest is the KeyDigest of the key that signs tokens; omitted if empty.
	JWTKeyDigest string
	// Metrics enables slurmctld's own metrics, available since Slurm 25.11.
	Metrics bool
	// MaxNodeCount limits the number of registered nodes: see the function of that name.
	MaxNodeCount int
	// NodeSets are the sets of dynamic nodes, in any order.
	NodeSets []NodeSet
	// GresTypes are GRES types besides those of the NodeSets.
	GresTypes []string
	// PowerSaving lets Slurm power nodes up and down; nil without elastic NodeSets.
	PowerSaving *PowerSaving
	// Records are the records of elastic nodes.
	Records []Record
	// Contain adds an extern step to each job that adopts external processes, such as sshd sessions.
	Contain bool
	// Confined confines jobs with cgroups.
	Confined bool
	// Exclusive lets only one job at a time run on a node, unless a partition says otherwise.
	Exclusive bool
	// Prolog, Epilog, PrologSlurmctld and EpilogSlurmctld are names of scripts in Directory, in the order of execution.
	// If there are none, the administrator may set the key.
	Prolog, Epilog, PrologSlurmctld, EpilogSlurmctld []string
	// ExtraConf holds the administrator's additions.
	ExtraConf string
}

// A Host is a slurmctld: its host name and, if the name does not resolve, its address.
type Host struct {
	Name, Address string
}

// An Endpoint is the address of a daemon.
type Endpoint struct {
	Host string
	Port int
}

// Build generates slurm.conf. Its error joins everything that has to be changed, mostly as an *Error about a line of
// ExtraConf.
func Build(cluster Cluster) (Document, error) {
	if err := cluster.check(); err != nil {
		return Document{}, err
	}
	m := merger{owned: maps.Clone(ownedKeys), tokens: map[string][]string{
		"slurmctldparameters": {"enable_configless", "reconfig_on_restart"},
		"authinfo":            {"use_client_ids"},
	}}
	if cluster.JWTKeyDigest != "" {
		m.tokens["slurmctldparameters"] = append(m.tokens["slurmctldparameters"], keyMarker+"="+cluster.JWTKeyDigest)
	}
	m.own = cluster.owned()
	if cluster.PowerSaving != nil {
		m.savePower(*cluster.PowerSaving)
	}
	for _, script := range cluster.scripts() {
		if len(script.names) > 0 {
			m.owned[script.key] = owner{
				"its scripts come from ConfigMaps",
				"remove the line, or add the script to a ConfigMap of spec." + script.field,
			}
		}
		for _, name := range script.names {
			m.own.Append(Pair{script.key, script.directory + name})
		}
	}
	cluster.lists(&m)
	cluster.defaults(&m.own)
	sets := slices.SortedFunc(slices.Values(cluster.NodeSets),
		func(a, b NodeSet) int { return cmp.Compare(a.Name, b.Name) })
	written := Written(cluster.ExtraConf)
	defined := namesOf(written, nodeSet)
	for _, set := range sets {
		defined[set.slurmName()] = true
	}
	for _, record := range cluster.Records {
		pairs, err := record.pairs()
		if err != nil {
			return Document{}, fmt.Errorf("the records of NodeSet %s: %w", record.NodeSet, err)
		}
		m.own.Append(pairs...)
	}
	for _, set := range sets {
		set.appendTo(&m.own, defined, cluster.partitionDefaults(set, written))
	}
	document, err := m.merge(cluster.ExtraConf)
	return inSections(document), errors.Join(err, checkRecords(document, sets))
}

// owned returns the parameters that only the operator may set, in the order of a hand-written file.
func (c Cluster) owned() Document {
	var d Document
	d.Set("ClusterName", c.Name)
	for _, host := range c.Hosts {
		value := host.Name
		if host.Address != "" {
			value += "(" + host.Address + ")"
		}
		d.Append(Pair{"SlurmctldHost", value})
	}
	d.Set("SlurmctldPort", strconv.Itoa(c.Port))
	d.Set("SlurmdPort", strconv.Itoa(SlurmdPort))
	d.Set("SlurmUser", c.SlurmUser)
	d.Set("StateSaveLocation", StateSaveLocation)
	d.Set("SlurmctldPidFile", SlurmctldPidFile)
	d.Set("SlurmdPidFile", SlurmdPidFile)
	setAuthentication(&d, c.JWKS)
	d.Set("CredType", "cred/slurm")
	d.Set("MaxNodeCount", strconv.Itoa(c.MaxNodeCount))
	if c.Accounting != nil {
		d.Set("AccountingStorageType", "accounting_storage/slurmdbd")
		d.Set("AccountingStorageHost", c.Accounting.Host)
		d.Set("AccountingStoragePort", strconv.Itoa(c.Accounting.Port))
	}
	if c.Metrics {
		d.Set("MetricsType", "metrics/openmetrics")
	}
	return d
}

// setAuthentication sets the parameters that all daemons must agree on.
func setAuthentication(d *Document, jwks bool) {
	parameters := "jwt_key=" + JWTKeyFile
	if jwks {
		parameters += ",jwks=" + JWKSFile
	}
	d.Set("AuthType", "auth/slurm")
	d.Set("AuthAltTypes", "auth/jwt")
	d.Set("AuthAltParameters", parameters)
}

// lists sets the lists in which the operator has tokens.
func (c Cluster) lists(m *merger) {
	for _, key := range []string{"SlurmctldParameters", "AuthInfo"} {
		m.own.Set(key, strings.Join(m.tokens[strings.ToLower(key)], ","))
	}
	if tokens := m.tokens["schedulerparameters"]; len(tokens) > 0 {
		m.own.Set("SchedulerParameters", strings.Join(tokens, ","))
	}
	types := slices.Clone(c.GresTypes)
	for _, set := range c.NodeSets {
		types = append(types, set.GresTypes...)
	}
	for _, record := range c.Records {
		types = append(types, record.gresTypes()...)
	}
	if len(types) > 0 {
		types = slices.Compact(slices.Sorted(slices.Values(types)))
		m.own.Set(gresTypes, strings.Join(types, ","))
	}
	if c.Contain {
		m.own.Set(prologFlags, contain)
	}
	if c.Confined {
		m.own.Set("TaskPlugin", "task/affinity,task/cgroup")
	}
}

// defaults sets the values that the administrator may override.
func (c Cluster) defaults(d *Document) {
	if c.Confined {
		d.Set("ProctrackType", "proctrack/cgroup")
		d.Set("JobAcctGatherType", "jobacct_gather/cgroup")
		d.Set("SelectTypeParameters", "CR_Core_Memory")
	} else {
		// Neither needs its own cgroup tree, so that slurmd runs in an ordinary pod.
		d.Set("ProctrackType", "proctrack/linuxproc")
		d.Set("JobAcctGatherType", "jobacct_gather/linux")
	}
	d.Set("SelectType", "select/cons_tres")
	// A node that was down for any reason returns to service when its slurmd registers.
	d.Set("ReturnToService", "2")
	d.Set("SlurmdSpoolDir", SlurmdSpoolDir)
	// A backup takes over after this time; Slurm's default of two minutes is long for a pod that was replaced.
	d.Set("SlurmctldTimeout", "30")
	// Running jobs are lost after this time, so it is Slurm's default.
	d.Set("SlurmdTimeout", "300")
}

// partitionDefaults returns parameters of a NodeSet's partition that the administrator may override.
func (c Cluster) partitionDefaults(set NodeSet, written Document) []Pair {
	var defaults []Pair
	if c.Exclusive {
		defaults = append(defaults, Pair{"OverSubscribe", "EXCLUSIVE"})
	}
	chosen := slices.ContainsFunc(defaultMemory, func(key string) bool { _, found := written.Get(key); return found })
	if c.Confined && set.MemoryPerCPU > 0 && !chosen {
		// Otherwise a job that does not ask for memory would get all the memory of a node.
		defaults = append(defaults, Pair{defaultMemory[0], strconv.Itoa(set.MemoryPerCPU)})
	}
	return defaults
}

// A script is one of the four types of job scripts.
type script struct {
	key, field string
	directory  string // prefix of the names
	names      []string
}

// scripts returns the types. Slurm sends prologs and epilogs with a relative name to every slurmd with the
// configuration. Those of slurmctld are relative to its working directory, and it does not start if they are missing.
func (c Cluster) scripts() []script {
	return []script{
		{"Prolog", "prologScriptRefs", "", c.Prolog},
		{"Epilog", "epilogScriptRefs", "", c.Epilog},
		{"PrologSlurmctld", "prologSlurmctldScriptRefs", Directory + "/", c.PrologSlurmctld},
		{"EpilogSlurmctld", "epilogSlurmctldScriptRefs", Directory + "/", c.EpilogSlurmctld},
	}
}

// check rejects values that slurmctld would not read back unchanged.
func (c Cluster) check() error {
	var faults []error
	checkName := func(what, name string) {
		if !isName(name) {
			faults = append(faults, fmt.Errorf("%s %q must consist of %s; change it", what, name, nameCharacters))
		}
	}
	checkName("the cluster name", c.Name)
	checkName("the Slurm user", c.SlurmUser)
	if len(c.Hosts) == 0 {
		faults = append(faults, errors.New("a cluster needs at least one slurmctld; name its host"))
	}
	for _, host := range c.Hosts {
		checkName("the slurmctld host", host.Name)
		if host.Address != "" {
			checkName("the slurmctld address", host.Address)
		}
	}
	if c.Accounting != nil {
		checkName("the slurmdbd host", c.Accounting.Host)
	}
	for _, script := range c.scripts() {
		for _, name := range script.names {
			checkName("the "+script.key+" script", name)
		}
	}
	for _, gres := range c.GresTypes {
		checkName("the GRES type", gres)
	}
	for _, set := range c.NodeSets {
		if err := set.Check(); err != nil {
			faults = append(faults, fmt.Errorf("NodeSet %s: %w", set.Name, err))
		}
	}
	return errors.Join(faults...)
}

// nameCharacters describes isName in messages.
const nameCharacters = "letters, digits, '.', '_', ':' and '-'"

// isName reports whether a text can be used in a configuration file without quoting.
func isName(text string) bool {
	return text != "" &&
		strings.IndexFunc(text, func(r rune) bool { return !isKeyCharacter(r) && r != '-' && r != ':' }) < 0
}

// IsNodeSetName reports whether a NodeSet and its partition can have a name in slurm.conf. Slurm gives ALL and DEFAULT
// a meaning of their own.
func IsNodeSetName(text string) bool {
	return isName(text) && !strings.EqualFold(text, "ALL") && !strings.EqualFold(text, "DEFAULT")
}

// inSections orders the entries: parameters before records, otherwise in their original order.
func inSections(d Document) Document {
	sorted := slices.SortedStableFunc(d.All(), func(a, b Entry) int { return section(a) - section(b) })
	return Document{sorted}
}

func section(entry Entry) int {
	if isRecord(entry.Key()) {
		return 1
	}
	return 0
}
