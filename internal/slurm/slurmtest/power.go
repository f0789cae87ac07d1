package slurmtest

import (
	"maps"
	"slices"
	"time"
)

// A power is where a node with a record in slurm.conf is in its power cycle.
type power uint8

const (
	powerUp      power = iota // it is up; all other nodes always are
	powerOff                  // POWERED_DOWN
	powerPending              // POWERED_DOWN, and is about to be powered up
	poweringUp                // POWERING_UP: slurmctld waits for its slurmd
	powerLeaving              // it is up, and is powered down when its last job has ended
	poweringDown              // POWERING_DOWN
)

// The times of the power cycle. Slurm's own are settings.
const (
	// ResumeTimeout is how long slurmctld waits for a slurmd after a power-up.
	ResumeTimeout = 10 * time.Minute
	// SuspendTimeout is how long a node is POWERING_DOWN.
	SuspendTimeout = time.Second
	// requeueDelay is how long a requeued job stays in the queue at least.
	requeueDelay = 2 * time.Minute
)

// AddCloudNodes adds records of slurm.conf with State=CLOUD: they are powered down, and have no slurmd.
func (s *Server) AddCloudNodes(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if s.nodes[name] == nil {
			s.nodes[name] = &node{name: name, cloud: true, power: powerOff, flags: []string{"CLOUD"}}
		}
	}
	s.touchNodes()
	s.partsChanged = s.nodesChanged
	s.schedule()
}

// powerFlags returns the state flags of a node's power cycle.
func (n *node) powerFlags() []string {
	return map[power][]string{
		powerOff: {"POWERED_DOWN"}, powerPending: {"POWER_UP", "POWERED_DOWN"},
		poweringUp: {"NOT_RESPONDING", "POWERING_UP"}, powerLeaving: {"POWER_DOWN"}, poweringDown: {"POWERING_DOWN"},
	}[n.power]
}

// schedulable reports whether jobs can be allocated to a node as far as its slurmd is concerned: it responds, or is
// powered down and can be powered up.
func (n *node) schedulable() bool {
	switch n.power {
	case powerUp:
		return !n.has("NOT_RESPONDING")
	case powerOff, powerPending, poweringUp:
		return true
	case powerLeaving, poweringDown:
	}
	return false
}

func (n *node) set(next power, now time.Time) { n.power, n.powerSince = next, now }

// areUp reports whether the slurmds of all nodes have registered.
func (s *Server) areUp(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		node := s.nodes[name]
		return node != nil && node.power != powerUp && node.power != powerLeaving
	})
}

// setPower starts a power-up or power-down, as an update of a node asks for it.
func (s *Server) setPower(n *node, state string, force bool) {
	now := s.clock()
	switch {
	case state == "POWER_UP" && n.power == powerOff:
		n.set(powerPending, now)
	case state == "POWER_UP":
	case n.power == powerOff || n.power == poweringDown:
	case force:
		s.requeue(n.name)
		s.suspend(n)
	case s.busy(n.name):
		n.set(powerLeaving, now)
	default:
		s.suspend(n)
	}
}

// suspend powers a node down. It clears a drain, and DOWN.
func (s *Server) suspend(n *node) {
	n.setFlag("DRAIN", false)
	n.setFlag("NOT_RESPONDING", false)
	n.down = false
	n.set(poweringDown, s.clock())
}

// requeue returns the jobs of a node to the queue.
func (s *Server) requeue(name string) {
	for _, job := range s.jobs {
		if job.base == "RUNNING" && slices.Contains(job.nodes, name) {
			job.base, job.nodes, job.start, job.end = "PENDING", nil, time.Time{}, time.Time{}
			job.begin = s.clock().Add(requeueDelay)
			s.requeued++
			s.touchJobs()
		}
	}
}

// Requeued returns how often a job has returned to the queue because of its node.
func (s *Server) Requeued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requeued
}

// advancePower moves nodes along their power cycle, and starts the jobs whose nodes are up.
func (s *Server) advancePower() {
	now := s.clock()
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		node := s.nodes[name]
		before := node.power
		switch {
		case node.power == powerOff && s.busy(name), node.power == powerPending:
			node.set(poweringUp, now)
		case node.power == poweringUp && now.Sub(node.powerSince) >= ResumeTimeout:
			s.requeue(name)
			node.set(powerOff, now)
			node.down, node.reason, node.reasonBy, node.reasonAt = true, "ResumeTimeout reached", "slurm", now.Unix()
		case node.power == powerLeaving && !s.busy(name):
			s.suspend(node)
		case node.power == poweringDown && now.Sub(node.powerSince) >= SuspendTimeout:
			node.set(powerOff, now)
		}
		if node.power != before {
			s.touchNodes()
		}
	}
	for _, job := range s.jobs {
		if job.configuring() && s.areUp(job.nodes) {
			job.end = now.Add(job.runs)
			s.touchJobs()
		}
	}
}
