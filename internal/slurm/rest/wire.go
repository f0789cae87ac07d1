package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// maxExact is the largest number up to which a float64 represents every integer.
const maxExact = 1 << 53

// A number is an integer as slurmrestd sends it: plain, or an object that can also be infinite or not set.
type number struct {
	value    int64
	set      bool
	infinite bool
}

// UnmarshalJSON reads either form. Strings are rejected.
func (n *number) UnmarshalJSON(data []byte) error {
	*n = number{}
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	if len(data) == 0 || data[0] != '{' {
		value, err := strconv.ParseFloat(string(data), 64)
		if err != nil {
			return fmt.Errorf("%.20q is not a number", data)
		}
		return n.setValue(value)
	}
	var object struct {
		Set      bool     `json:"set"`
		Infinite bool     `json:"infinite"`
		Number   *float64 `json:"number"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	n.infinite = object.Infinite
	if !object.Set || object.Infinite {
		return nil
	}
	if object.Number == nil {
		return errors.New("a number that is set has no value")
	}
	return n.setValue(*object.Number)
}

func (n *number) setValue(value float64) error {
	if math.IsNaN(value) || value > maxExact || value < -maxExact {
		return fmt.Errorf("%g is out of range", value)
	}
	n.value, n.set = int64(value), true
	return nil
}

// time returns the number as a time; zero if Slurm does not know it.
func (n *number) time() time.Time {
	if !n.set || n.value <= 0 {
		return time.Time{}
	}
	return time.Unix(n.value, 0).UTC()
}

// wireNode is a node as slurmrestd sends it.
type wireNode struct {
	Name            string   `json:"name"`
	Hostname        string   `json:"hostname"`
	Address         string   `json:"address"`
	State           []string `json:"state"`
	Reason          string   `json:"reason"`
	ReasonSetByUser string   `json:"reason_set_by_user"`
	ReasonChangedAt number   `json:"reason_changed_at"`
	Comment         string   `json:"comment"`
	InstanceID      string   `json:"instance_id"`
	Features        []string `json:"features"`
	ActiveFeatures  []string `json:"active_features"`
	Partitions      []string `json:"partitions"`
	Reservation     string   `json:"reservation"`
	Topology        string   `json:"topology" since:"v0.0.43"`
	CPUs            number   `json:"cpus"`
	AllocCPUs       number   `json:"alloc_cpus"`
	RealMemory      number   `json:"real_memory"`
	AllocMemory     number   `json:"alloc_memory"`
	GRES            string   `json:"gres"`
	GRESUsed        string   `json:"gres_used"`
	BootTime        number   `json:"boot_time"`
	SlurmdStartTime number   `json:"slurmd_start_time"`
	LastBusy        number   `json:"last_busy"`
	Version         string   `json:"version"`
}

// node converts the record. The members that decide whether a node is drained are mandatory.
func (w *wireNode) node(intern *interner) (slurm.Node, error) {
	if w.Name == "" {
		return slurm.Node{}, errors.New("a node has no name")
	}
	if len(w.State) == 0 || !w.AllocCPUs.set || !w.AllocMemory.set {
		return slurm.Node{}, fmt.Errorf("node %q has no state or no allocation", w.Name)
	}
	state, flags, others := slurm.ParseState(w.State)
	node := slurm.Node{
		Name: w.Name, Hostname: w.Hostname, Address: w.Address,
		State: state, Flags: flags, OtherStates: others,
		Reason: intern.text(w.Reason), ReasonBy: intern.text(w.ReasonSetByUser), ReasonAt: w.ReasonChangedAt.time(),
		Comment: intern.text(w.Comment), Instance: w.InstanceID,
		Features: intern.list(w.Features), ActiveFeatures: intern.list(w.ActiveFeatures),
		Partitions: intern.list(w.Partitions), Reservation: intern.text(w.Reservation),
		Topology: intern.text(w.Topology),
		CPUs:     int(w.CPUs.value), AllocatedCPUs: int(w.AllocCPUs.value),
		Memory: w.RealMemory.value, AllocatedMemory: w.AllocMemory.value,
		GRES: intern.text(w.GRES), GRESUsed: intern.text(w.GRESUsed),
		BootedAt: w.BootTime.time(), SlurmdStartedAt: w.SlurmdStartTime.time(), LastBusy: w.LastBusy.time(),
		Version: intern.text(w.Version),
	}
	if node.Hostname == node.Name {
		node.Hostname = node.Name // share one string
	}
	if node.Address == node.Name {
		node.Address = node.Name
	}
	return node, nil
}

// eachNode reads a list of nodes.
func eachNode(nodes *[]slurm.Node) func(*json.Decoder) error {
	intern := newInterner()
	return eachOf(func(wire *wireNode) error {
		node, err := wire.node(intern)
		*nodes = append(*nodes, node)
		return err
	})
}

// An interner keeps one copy of values that many records have in common.
type interner struct {
	texts map[string]string
	lists map[string][]string
}

func newInterner() *interner {
	return &interner{texts: map[string]string{}, lists: map[string][]string{}}
}

func (in *interner) text(text string) string {
	if text == "" {
		return ""
	}
	if known, ok := in.texts[text]; ok {
		return known
	}
	in.texts[text] = text
	return text
}

// list returns a shared copy of a list; empty lists are nil.
func (in *interner) list(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	key := strings.Join(list, "\x00")
	if known, ok := in.lists[key]; ok {
		return known
	}
	in.lists[key] = list
	return list
}

// wireJob is a job as slurmrestd sends it.
type wireJob struct {
	JobID     number   `json:"job_id"`
	Name      string   `json:"name"`
	JobState  []string `json:"job_state"`
	UserName  string   `json:"user_name"`
	UserID    number   `json:"user_id"`
	Partition string   `json:"partition"`
	Reason    string   `json:"state_reason"`
	Nodes     string   `json:"nodes"`
	ResvName  string   `json:"resv_name"`
	StartTime number   `json:"start_time"`
	EndTime   number   `json:"end_time"`
	TimeLimit number   `json:"time_limit"`
}

func (w *wireJob) job(intern *interner) (slurm.Job, error) {
	if !w.JobID.set || len(w.JobState) == 0 {
		return slurm.Job{}, errors.New("a job has no id or no state")
	}
	job := slurm.Job{
		ID: w.JobID.value, Name: intern.text(w.Name), States: intern.list(w.JobState), User: intern.text(w.UserName),
		UserID: w.UserID.value, Partition: intern.text(w.Partition), Reason: intern.text(w.Reason),
		Nodes: intern.text(w.Nodes), Reservation: intern.text(w.ResvName), Start: w.StartTime.time(), End: w.EndTime.time(),
	}
	// Slurm invents an end a year ahead for a job without a limit.
	if w.TimeLimit.infinite && job.Holds() {
		job.End = time.Time{}
	}
	return job, nil
}

// eachJob reads a list of jobs.
func eachJob(jobs *[]slurm.Job) func(*json.Decoder) error {
	return everyJob(func(job *slurm.Job) error {
		*jobs = append(*jobs, *job)
		return nil
	})
}

// everyJob calls each for the jobs of a list.
func everyJob(each func(*slurm.Job) error) func(*json.Decoder) error {
	intern := newInterner()
	return eachOf(func(wire *wireJob) error {
		job, err := wire.job(intern)
		if err != nil {
			return err
		}
		return each(&job)
	})
}

// wireState is the state of a job as slurmrestd sends it.
type wireState struct {
	ID    string   `json:"job_id"`
	State []string `json:"state"`
}

// eachState calls each for the states of a list.
func eachState(each func(slurm.JobState) error) func(*json.Decoder) error {
	intern := newInterner()
	return eachOf(func(wire *wireState) error {
		if wire.ID == "" || len(wire.State) == 0 {
			return errors.New("a job has no id or no state")
		}
		return each(slurm.JobState{ID: wire.ID, States: intern.list(wire.State)})
	})
}

// wireReservation is a reservation as slurmrestd sends it.
type wireReservation struct {
	Name      string   `json:"name"`
	StartTime number   `json:"start_time"`
	EndTime   number   `json:"end_time"`
	NodeList  string   `json:"node_list"`
	Users     string   `json:"users"`
	Flags     []string `json:"flags"`
}

func (w *wireReservation) reservation() slurm.Reservation {
	reservation := slurm.Reservation{
		Name: w.Name, Start: w.StartTime.time(), End: w.EndTime.time(), Nodes: w.NodeList, Flags: w.Flags,
	}
	if w.Users != "" {
		reservation.Users = strings.Split(w.Users, ",")
	}
	return reservation
}

// wireDiag holds slurmctld's statistics as slurmrestd sends them.
type wireDiag struct {
	ReqTime      number `json:"req_time"`
	ReqTimeStart number `json:"req_time_start"`
	Submitted    number `json:"jobs_submitted"`
	Started      number `json:"jobs_started"`
	Completed    number `json:"jobs_completed"`
	Canceled     number `json:"jobs_canceled"`
	Failed       number `json:"jobs_failed"`
	Pending      number `json:"jobs_pending"`
	Running      number `json:"jobs_running"`
	RPCs         []struct {
		Type  string `json:"message_type"`
		Count number `json:"count"`
	} `json:"rpcs_by_message_type"`
}

func (w *wireDiag) diag() slurm.Diag {
	diag := slurm.Diag{
		Now: w.ReqTime.time(), CountersSince: w.ReqTimeStart.time(), RPCs: make(map[string]int64, len(w.RPCs)),
		JobsSubmitted: w.Submitted.value, JobsStarted: w.Started.value, JobsCompleted: w.Completed.value,
		JobsCanceled: w.Canceled.value, JobsFailed: w.Failed.value,
		JobsPending: w.Pending.value, JobsRunning: w.Running.value,
	}
	for _, rpc := range w.RPCs {
		diag.RPCs[rpc.Type] += rpc.Count.value
	}
	return diag
}

// wireMeta is the part of every answer about slurmrestd itself.
type wireMeta struct {
	Slurm struct {
		Release string `json:"release"`
		Cluster string `json:"cluster"`
	} `json:"slurm"`
}

// version returns slurmrestd's release; zero if it cannot be parsed.
func (m *wireMeta) version() slurm.Version {
	version, err := slurm.ParseVersion(m.Slurm.Release)
	if err != nil {
		return slurm.Version{}
	}
	return version
}
