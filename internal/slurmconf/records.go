package slurmconf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
)

// Elastic nodes have records in slurm.conf, with State=CLOUD: Slurm schedules jobs to them before they exist. See
// docs/adr/0067-elastic-nodesets-by-power-saving.md.

// A Record describes Slurm nodes that slurmctld knows before their slurmds have registered.
type Record struct {
	// NodeSet is the custom resource that they belong to; empty if it no longer exists.
	NodeSet string
	// Nodes are their names.
	Nodes []string
	// Parameters are what the names have in common.
	Parameters []Pair
}

// cloud is the state of records whose nodes are powered up and down.
var cloud = Pair{"State", "CLOUD"}

// pairs returns the line of a record.
func (r Record) pairs() ([]Pair, error) {
	expression, err := hostlist.Compress(r.Nodes)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]Pair{{nodeName, expression}, cloud}, r.Parameters), nil
}

// PowerSaving are the settings by which Slurm powers nodes up and down. The programs do nothing: the operator reads the
// states of nodes. Slurm itself never powers an idle node down, because SuspendTime is never over; it must be finite,
// or slurmctld disables power saving.
type PowerSaving struct {
	// ResumeTimeout is how long slurmctld waits for a slurmd after a power-up.
	ResumeTimeout time.Duration
}

// powerProgram does nothing.
const resumeProgram, powerProgram = "ResumeProgram", "/bin/true"

// suspendTimeout is how long a node is POWERING_DOWN, in which it gets no job, while its pod is deleted.
const suspendTimeout = 30 * time.Second

// powerTokens are tokens in lists, by key. Without requeue_on_resume_failure, a job whose nodes do not come up would
// fail; without the others, scripts would start before all nodes of a job are up.
var powerTokens = map[string][]string{
	"SlurmctldParameters": {
		"idle_on_node_suspend", "power_save_interval=1", "power_save_min_interval=0", "cloud_reg_addrs",
	},
	"SchedulerParameters": {"requeue_on_resume_failure", "sbatch_wait_nodes", "salloc_wait_nodes"},
}

// powerOwner explains why the operator owns the keys of power saving.
var powerOwner = owner{
	"elastic NodeSets depend on it", "remove the line; spec.elastic of a NodeSet has idleTimeout and startTimeout",
}

// keys returns the keys of power saving. Rates limit how many nodes per minute are powered up or down: the nodes of one
// job must be powered up together.
func (p PowerSaving) keys() []Pair {
	seconds := func(length time.Duration) string { return strconv.FormatInt(int64(length/time.Second), 10) }
	return []Pair{
		{resumeProgram, powerProgram},
		{"SuspendProgram", powerProgram},
		{"SuspendTime", "2000000000"},
		{"SuspendTimeout", seconds(suspendTimeout)},
		{"ResumeTimeout", seconds(p.ResumeTimeout)},
		{"ResumeRate", "0"},
		{"SuspendRate", "0"},
		{"SuspendExcStates", "DRAIN"},
	}
}

// PowerKeys returns the keys of power saving that a document sets.
func PowerKeys(document Document) []string {
	var found []string
	for _, pair := range (PowerSaving{}).keys() {
		if _, set := document.Get(pair.Key); set {
			found = append(found, pair.Key)
		}
	}
	return found
}

// savePower adds power saving to a document in the making.
func (m *merger) savePower(power PowerSaving) {
	for key, tokens := range powerTokens {
		name := strings.ToLower(key)
		m.tokens[name] = slices.Concat(m.tokens[name], tokens)
	}
	for _, pair := range power.keys() {
		m.own.Append(pair)
		m.owned[pair.Key] = powerOwner
	}
	// slurmctld contacts every slurmd itself: others do not know the addresses of nodes that were powered up later.
	m.own.Set("TreeWidth", "65533")
}

const nodeName = "NodeName"

// HasRecords reports whether a slurm.conf may have records for elastic nodes, without parsing it.
func HasRecords(conf string) bool { return strings.Contains(conf, " "+cloud.Key+"="+cloud.Value) }

// RecordsInForce returns the parameters of the records for elastic nodes in a document, by the name of the node. Those
// that the administrator has written into extraConf are not among them.
func RecordsInForce(document Document) map[string][]Pair {
	records := map[string][]Pair{}
	if program, _ := document.Get(resumeProgram); program != powerProgram {
		return records // an earlier version wrote an administrator's lines as they were in extraConf
	}
	for entry := range document.All() {
		if !isElasticRecord(entry) {
			continue
		}
		names, err := hostlist.Expand(entry.Value(), maxNodeLimit)
		if err != nil {
			continue // the operator writes none that cannot be parsed
		}
		for _, name := range names {
			records[name] = entry.Pairs[2:]
		}
	}
	return records
}

// isElasticRecord reports whether a line of a generated slurm.conf is a record of elastic nodes. Such a record has its
// state before all other parameters. An administrator's line never has: see withStateLast.
func isElasticRecord(entry Entry) bool {
	return entry.Is(nodeName) && len(entry.Pairs) > 2 && entry.Pairs[1] == cloud
}

// withStateLast returns an administrator's line in which no other parameter follows a state that comes first.
func withStateLast(entry Entry) Entry {
	if isElasticRecord(entry) {
		entry.Pairs = slices.Concat(entry.Pairs[:1], entry.Pairs[2:], entry.Pairs[1:2])
	}
	return entry
}

// has reports whether a document has an entry.
func (d Document) has(entry Entry) bool {
	return slices.ContainsFunc(d.entries, func(other Entry) bool { return slices.Equal(other.Pairs, entry.Pairs) })
}

// SettleRecords returns the records for a configuration: the wanted ones, except that
//
//   - a record in force stays as it is, even if it is not wanted any more, unless it may be changed: slurmctld ends the
//     jobs of a node whose record changes or is removed;
//   - a new record is left out unless it may be added: a slurmd that has registered without one would exit.
func SettleRecords(wanted []Record, inForce map[string][]Pair, mayChange, mayAdd func(node string) bool) []Record {
	var settled []Record
	decided := map[string]bool{}
	for _, record := range wanted {
		for _, node := range record.Nodes {
			present, exists := inForce[node]
			parameters := record.Parameters
			switch {
			case exists && !slices.Equal(present, parameters) && !mayChange(node):
				parameters = present
			case !exists && !mayAdd(node):
				continue
			}
			decided[node] = true
			settled = addTo(settled, record.NodeSet, node, parameters)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(inForce)) {
		if !decided[node] && !mayChange(node) {
			settled = addTo(settled, "", node, inForce[node])
		}
	}
	return settled
}

// addTo adds a node to the record with the same parameters.
func addTo(records []Record, set, node string, parameters []Pair) []Record {
	at := slices.IndexFunc(records, func(record Record) bool {
		return record.NodeSet == set && slices.Equal(record.Parameters, parameters)
	})
	if at < 0 {
		return append(records, Record{NodeSet: set, Nodes: []string{node}, Parameters: parameters})
	}
	records[at].Nodes = append(records[at].Nodes, node)
	return records
}

// gres returns the GRES of a record, such as gpu:h100:8.
func (r Record) gres() []string {
	for _, pair := range r.Parameters {
		if strings.EqualFold(pair.Key, "Gres") {
			return splitTokens(pair.Value)
		}
	}
	return nil
}

// gresTypes returns the types of a record's GRES.
func (r Record) gresTypes() []string {
	var types []string
	for _, gres := range r.gres() {
		name, _, _ := strings.Cut(gres, ":")
		types = append(types, name)
	}
	return types
}

// RecordDevices returns the part of slurmctld's gres.conf about the devices of records: a GPU counts only with a device
// file, which need not exist where slurmctld runs. The files are those that slurmds have in a directory.
func RecordDevices(records []Record, directory string) string {
	var conf strings.Builder
	for _, record := range records {
		nodes, err := hostlist.Compress(record.Nodes)
		if err != nil {
			continue // Build reports it
		}
		first := 0
		for _, gres := range record.gres() {
			gres, _, _ = strings.Cut(gres, "(")
			fields := strings.Split(gres, ":")
			count, err := strconv.Atoi(fields[len(fields)-1])
			if fields[0] != "gpu" || err != nil || count < 1 {
				continue
			}
			fmt.Fprintf(&conf, "%s=%s Name=gpu", nodeName, nodes)
			if kind := strings.Join(fields[1:len(fields)-1], ":"); kind != "" {
				conf.WriteString(" Type=" + kind)
			}
			fmt.Fprintf(&conf, " File=%s/gpu[%d-%d]\n", directory, first, first+count-1)
			first += count
		}
	}
	return conf.String()
}
