package slurmtest

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
)

// nodeCPUs is the number of CPUs per node. A job uses one of them on each of its nodes.
const nodeCPUs = 2

// maxNames is more than any cluster has.
const maxNames = 1 << 17

// node is slurmctld's record of a node.
type node struct {
	name       string
	down       bool
	flags      []string
	reason     string
	reasonBy   string
	reasonAt   int64
	comment    string
	instance   string
	features   []string
	topology   string
	registered int64
	lastBusy   int64
	cloud      bool // has a record in slurm.conf, with State=CLOUD
	power      power
	powerSince time.Time // since when power is what it is
}

// job is slurmctld's record of a job.
type job struct {
	id         int64
	name       string
	user       string
	base       string // PENDING, RUNNING, SUSPENDED, COMPLETED, CANCELLED, NODE_FAIL
	completing time.Time
	nodes      []string
	count      int
	required   []string
	runs       time.Duration
	limit      time.Duration
	start, end time.Time
	begin      time.Time // when it may start at the earliest
	array      int64     // the number of its array; 0 for none
	tasks      []int     // the array tasks that it represents: all that have not started, or the one it is
}

// names returns the job's number, with the task index for each array task that it represents.
func (j *job) names() []string {
	number := strconv.FormatInt(j.id, 10)
	if j.array == 0 {
		return []string{number}
	}
	names := make([]string, len(j.tasks))
	for i, task := range j.tasks {
		names[i] = number + "_" + strconv.Itoa(task)
	}
	return names
}

// configuring reports whether a job waits for nodes to be powered up.
func (j *job) configuring() bool { return j.base == "RUNNING" && j.end.IsZero() }

// holds reports whether the job has resources on its nodes.
func (j *job) holds() bool {
	return j.base == "RUNNING" || j.base == "SUSPENDED" || !j.completing.IsZero()
}

// reservation is slurmctld's record of a reservation.
type reservation struct {
	name       string
	start, end int64
	nodes      string
	users      string
	flags      []string
}

// AddNodes adds nodes, as if their slurmds had registered. Existing nodes keep their records.
func (s *Server) AddNodes(names ...string) {
	instances := make(map[string]string, len(names))
	for _, name := range names {
		instances[name] = ""
	}
	s.Register(instances)
}

// Register adds nodes whose slurmds bring instance IDs. One without an instance ID keeps that of the record.
func (s *Server) Register(instances map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock().Unix()
	for name, instance := range instances {
		if known := s.nodes[name]; known != nil {
			known.registered, known.down, known.instance = now, false, cmp.Or(instance, known.instance)
			known.setFlag("NOT_RESPONDING", false)
			if known.power != powerUp && known.power != powerLeaving {
				known.power, known.lastBusy = powerUp, now
			}
			continue
		}
		s.nodes[name] = &node{name: name, flags: []string{"DYNAMIC_NORM"}, registered: now, lastBusy: now,
			instance: instance}
	}
	s.rpcs["MESSAGE_NODE_REGISTRATION_STATUS"] += int64(len(instances))
	s.touchNodes()
	s.partsChanged = now
	s.schedule()
}

// ForgetNode removes a node unconditionally, like a slurmctld that crashed before it saved the node.
func (s *Server) ForgetNode(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, name)
	s.touchNodes()
}

// SetFlag sets or clears a state flag of a node, as slurmctld does by itself, for example NOT_RESPONDING.
func (s *Server) SetFlag(name, flag string, set bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if node, known := s.nodes[name]; known { // its record may have been deleted
		node.setFlag(flag, set)
	}
	s.touchNodes()
}

// StopNodes stops the slurmds of nodes, as when their pods are deleted: they no longer answer. Nodes without a record
// are ignored, and those that are powered down: slurmctld expects no answer of them.
func (s *Server) StopNodes(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if node := s.nodes[name]; node != nil && (node.power == powerUp || node.power == powerLeaving) {
			node.setFlag("NOT_RESPONDING", true)
		}
	}
	s.touchNodes()
}

// Heartbeat simulates the answers of all nodes to slurmctld's ping. It only updates the time of the last change.
func (s *Server) Heartbeat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touchNodes()
}

// SuspendJob suspends a job: its processes stay on its nodes, its CPUs are free.
func (s *Server) SuspendJob(id int64) { s.setJob(id, "SUSPENDED") }

// ResumeJob resumes a suspended job.
func (s *Server) ResumeJob(id int64) { s.setJob(id, "RUNNING") }

func (s *Server) setJob(id int64, base string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	s.jobs[id].base = base
	s.rpcs["REQUEST_SUSPEND"]++
	s.touchNodes()
	s.touchJobs()
}

func (s *Server) touchNodes() { s.nodesChanged = s.clock().Unix() }
func (s *Server) touchJobs()  { s.jobsChanged = s.clock().Unix() }

func (n *node) setFlag(flag string, set bool) {
	n.flags = slices.DeleteFunc(n.flags, func(f string) bool { return f == flag })
	if set {
		n.flags = append([]string{flag}, n.flags...)
	}
}

func (n *node) has(flag string) bool { return slices.Contains(n.flags, flag) }

// usage is what jobs use of a node.
type usage struct {
	cpus       int
	completing bool
}

// usages returns what jobs use of all nodes.
func (s *Server) usages() map[string]usage {
	all := map[string]usage{}
	for _, job := range s.jobs {
		if !job.holds() {
			continue
		}
		for _, name := range job.nodes {
			use := all[name]
			if job.base == "RUNNING" {
				use.cpus++
			}
			use.completing = use.completing || !job.completing.IsZero()
			all[name] = use
		}
	}
	return all
}

// states returns a node's state as Slurm prints it.
func (n *node) states(use usage) []string {
	states := []string{"IDLE"}
	switch {
	case n.down:
		states[0] = "DOWN"
	case use.cpus >= nodeCPUs:
		states[0] = "ALLOCATED"
	case use.cpus > 0:
		states[0] = "MIXED"
	}
	if use.completing {
		states = append(states, "COMPLETING")
	}
	return slices.Concat(states, n.powerFlags(), n.flags)
}

// advance ends the jobs whose time is over and starts pending ones.
func (s *Server) advance() {
	now := s.clock()
	for _, job := range s.jobs {
		if job.base == "RUNNING" && !job.configuring() && !job.end.After(now) {
			s.finish(job, "COMPLETED", job.end)
		}
		if !job.completing.IsZero() && !job.completing.After(now) {
			job.completing = time.Time{}
			s.rpcs["MESSAGE_EPILOG_COMPLETE"]++
			s.touchNodes()
			s.touchJobs()
		}
	}
	s.advancePower()
	s.schedule()
}

// finish ends a job; the epilog then cleans up.
func (s *Server) finish(job *job, base string, at time.Time) {
	job.base, job.end = base, at
	if s.epilog > 0 {
		job.completing = at.Add(s.epilog)
	}
	for _, name := range job.nodes {
		if node, ok := s.nodes[name]; ok {
			node.lastBusy = at.Unix()
		}
	}
	s.rpcs["REQUEST_COMPLETE_BATCH_SCRIPT"]++
	s.touchNodes()
	s.touchJobs()
}

// schedule starts pending jobs, oldest first, on the first free nodes.
func (s *Server) schedule() {
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		for s.start(s.jobs[id]) {
		}
	}
}

// start starts a job, or the next task of an array, if it is pending and can start. It reports whether it did.
func (s *Server) start(waiting *job) bool {
	if waiting.base != "PENDING" || waiting.begin.After(s.clock()) {
		return false
	}
	free, count := s.freeFor(waiting), max(waiting.count, len(waiting.required), 1)
	if len(free) < count {
		return false
	}
	now, job := s.clock(), s.split(waiting)
	job.nodes, job.base, job.start, job.end = free[:count], "RUNNING", now, now.Add(job.runs)
	if !s.areUp(job.nodes) {
		job.end = time.Time{} // it waits for them
	}
	s.touchNodes()
	s.touchJobs()
	return true
}

// split turns the first task of an array, which is about to start, into a job. The last task keeps the array's own
// number.
func (s *Server) split(waiting *job) *job {
	if len(waiting.tasks) < 2 {
		return waiting
	}
	started := *waiting
	started.id, started.tasks, waiting.tasks = s.nextJob, waiting.tasks[:1], waiting.tasks[1:]
	s.jobs[started.id] = &started
	s.nextJob++
	return &started
}

// freeFor returns the nodes that a job could start on now.
func (s *Server) freeFor(job *job) []string {
	var free []string
	uses := s.usages()
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		node, use := s.nodes[name], uses[name]
		wanted := len(job.required) == 0 || slices.Contains(job.required, name)
		open := !node.down && !node.has("DRAIN") && node.schedulable()
		if wanted && open && !use.completing && use.cpus < nodeCPUs {
			free = append(free, name)
		}
	}
	return free
}

var sleeps = regexp.MustCompile(`sleep (\d+)`)

// submit adds a job that runs for as long as its script sleeps.
func (s *Server) submit(added *job, script string) int64 {
	added.id, added.base = s.nextJob, "PENDING"
	if len(added.tasks) > 0 {
		added.array = added.id
	}
	if found := sleeps.FindStringSubmatch(script); found != nil {
		seconds, _ := strconv.Atoi(found[1]) // digits only
		added.runs = time.Duration(seconds) * time.Second
	}
	s.jobs[added.id] = added
	s.nextJob++
	s.touchJobs()
	s.schedule()
	return added.id
}

// expand returns the records that an expression names, and whether some are missing.
func (s *Server) expand(expression string) (found []*node, missing bool) {
	names, err := hostlist.Expand(expression, maxNames)
	if err != nil || len(names) == 0 {
		return nil, true
	}
	for _, name := range names {
		if node, ok := s.nodes[name]; ok {
			found = append(found, node)
		} else {
			missing = true
		}
	}
	return found, missing
}

// busy reports whether slurmctld considers a node held by jobs. It ignores suspended ones.
func (s *Server) busy(name string) bool {
	for _, job := range s.jobs {
		if job.holds() && job.base != "SUSPENDED" && slices.Contains(job.nodes, name) {
			return true
		}
	}
	return false
}

// sortedNodes returns the nodes: 26.05 by name, 24.11 in an order of its own.
func (s *Server) sortedNodes() []*node {
	return slices.SortedFunc(maps.Values(s.nodes), func(a, b *node) int {
		if s.old() {
			a, b = b, a
		}
		return cmp.Compare(a.name, b.name)
	})
}
