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

// Where daemons find their files. Pods mount volumes there.
const (
	// Directory holds configuration files, scripts and keys.
	Directory = "/etc/slurm"
	// StateSaveLocation is where slurmctld saves its state.
	StateSaveLocation = "/var/spool/slurmctld"
	// SlurmdSpoolDir is where slurmd keeps its state and the scripts of jobs, unless somebody sets it.
	SlurmdSpoolDir = "/var/spool/slurmd"
	// SlurmctldPidFile, SlurmdPidFile and SlurmdbdPidFile hold the numbers of processes.
	SlurmctldPidFile = "/run/slurmctld/slurmctld.pid"
	SlurmdPidFile    = "/run/slurm/slurmd.pid"
	SlurmdbdPidFile  = "/run/slurmdbd/slurmdbd.pid"
	// JWTKeyFile and JWKSFile hold the keys of auth/jwt.
	JWTKeyFile = Directory + "/jwt_hs256.key"
	JWKSFile   = Directory + "/jwks.json"
)

// SlurmdPort is where slurmd listens.
const SlurmdPort = 6818

// A Cluster is everything that slurm.conf is made from.
type Cluster struct {
	// Name is the ClusterName.
	Name string
	// Hosts are the slurmctlds, the primary first.
	Hosts []Host
	// Port is where slurmctld listens.
	Port int
	// SlurmUser is the user that slurmctld runs as.
	SlurmUser string
	// Accounting is where slurmdbd listens; nil without accounting.
	Accounting *Endpoint
	// JWKS says that there is a set of further keys for auth/jwt.
	JWKS bool
	// JWTKeyDigest is the KeyDigest of the key that signs tokens; empty leaves it out.
	JWTKeyDigest string
	// Metrics turns on slurmctld's own metrics, which Slurm has since 25.11.
	Metrics bool
	// MaxNodeCount limits how many nodes may register: see the function of that name.
	MaxNodeCount int
	// NodeSets are the sets of nodes that register by themselves, in any order.
	NodeSets []NodeSet
	// GresTypes are generic resources besides those of the NodeSets.
	GresTypes []string
	// Contain makes a step of each job that takes in processes from outside of it, such as sessions of sshd.
	Contain bool
	// Prolog, Epilog, PrologSlurmctld and EpilogSlurmctld are names of scripts in Directory, in the order in which they
	// run. Without any, the administrator may set the key.
	Prolog, Epilog, PrologSlurmctld, EpilogSlurmctld []string
	// ExtraConf is what the administrator adds.
	ExtraConf string
}

// A Host is a slurmctld: its host name and, if that is not enough to find it, its address.
type Host struct {
	Name, Address string
}

// An Endpoint is where a daemon listens.
type Endpoint struct {
	Host string
	Port int
}

// Build makes slurm.conf. Its error joins everything that somebody has to change, most of it as an *Error about a line of
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
	for _, script := range cluster.scripts() {
		if len(script.names) > 0 {
			m.owned[script.key] = owner{"its scripts come from ConfigMaps", "remove the line, or add the script to a ConfigMap of spec." + script.field}
		}
		for _, name := range script.names {
			m.own.Append(Pair{script.key, script.directory + name})
		}
	}
	cluster.lists(&m)
	cluster.defaults(&m.own)
	sets := slices.SortedFunc(slices.Values(cluster.NodeSets), func(a, b NodeSet) int { return cmp.Compare(a.Name, b.Name) })
	for _, set := range sets {
		set.appendTo(&m.own)
	}
	document, err := m.merge(cluster.ExtraConf)
	return inSections(document), errors.Join(err, checkRecords(document))
}

// owned are the parameters that nobody else may set, in the order of a hand-written file.
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

// setAuthentication sets what all daemons must agree upon.
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
	types := slices.Clone(c.GresTypes)
	for _, set := range c.NodeSets {
		types = append(types, set.GresTypes...)
	}
	if len(types) > 0 {
		types = slices.Compact(slices.Sorted(slices.Values(types)))
		m.own.Set(gresTypes, strings.Join(types, ","))
	}
	if c.Contain {
		m.own.Set("PrologFlags", "Contain")
	}
}

// defaults sets what holds until the administrator says otherwise.
func (c Cluster) defaults(d *Document) {
	// Neither needs a cgroup tree of its own, so that slurmd runs in an ordinary pod.
	d.Set("ProctrackType", "proctrack/linuxproc")
	d.Set("JobAcctGatherType", "jobacct_gather/linux")
	d.Set("SelectType", "select/cons_tres")
	// A node that was down for whatever reason is of use again when its slurmd registers.
	d.Set("ReturnToService", "2")
	d.Set("SlurmdSpoolDir", SlurmdSpoolDir)
	// A backup takes over after this time; Slurm's own two minutes are long for a pod that was replaced.
	d.Set("SlurmctldTimeout", "30")
	// Running jobs are lost when it is over, so it stays as long as Slurm's own.
	d.Set("SlurmdTimeout", "300")
}

// A script is one of the four kinds of scripts around a job.
type script struct {
	key, field string
	directory  string // written before the names
	names      []string
}

// scripts lists the kinds. Slurm sends prologs and epilogs with a relative name to every slurmd along with the
// configuration. It takes those of slurmctld relative to the working directory, and does not start when they are missing.
func (c Cluster) scripts() []script {
	return []script{
		{"Prolog", "prologScriptRefs", "", c.Prolog},
		{"Epilog", "epilogScriptRefs", "", c.Epilog},
		{"PrologSlurmctld", "prologSlurmctldScriptRefs", Directory + "/", c.PrologSlurmctld},
		{"EpilogSlurmctld", "epilogSlurmctldScriptRefs", Directory + "/", c.EpilogSlurmctld},
	}
}

// check refuses values that would not arrive in slurmctld as they are.
func (c Cluster) check() error {
	var faults []error
	need := func(what, name string) {
		if !isName(name) {
			faults = append(faults, fmt.Errorf("%s %q must consist of %s; change it", what, name, nameCharacters))
		}
	}
	need("the cluster name", c.Name)
	need("the Slurm user", c.SlurmUser)
	if len(c.Hosts) == 0 {
		faults = append(faults, errors.New("a cluster needs at least one slurmctld; name its host"))
	}
	for _, host := range c.Hosts {
		need("the slurmctld host", host.Name)
		if host.Address != "" {
			need("the slurmctld address", host.Address)
		}
	}
	if c.Accounting != nil {
		need("the slurmdbd host", c.Accounting.Host)
	}
	for _, script := range c.scripts() {
		for _, name := range script.names {
			need("the "+script.key+" script", name)
		}
	}
	for _, gres := range c.GresTypes {
		need("the GRES type", gres)
	}
	for _, set := range c.NodeSets {
		if err := set.Check(); err != nil {
			faults = append(faults, fmt.Errorf("NodeSet %s: %w", set.Name, err))
		}
	}
	return errors.Join(faults...)
}

// nameCharacters are those of a name, for messages.
const nameCharacters = "letters, digits, '.', '_', ':' and '-'"

// isName reports whether a text can stand in a configuration file without changing what is around it.
func isName(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool { return !isKeyCharacter(r) && r != '-' && r != ':' }) < 0
}

// inSections orders the entries: parameters first, then records, each in the order in which they came.
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
