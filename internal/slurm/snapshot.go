package slurm

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
)

// A Snapshot is the known state of a cluster. It never changes and is shared: treat everything in it as read-only.
// Nodes that did not change are the same pointers in the next snapshot.
type Snapshot struct {
	// Generation counts the snapshots of a mirror.
	Generation uint64
	// Nodes are all Slurm nodes, sorted by name.
	Nodes []*Node
	Queue
	// NodesAsOf and JobsAsOf are the start times of the last successful reads from slurmrestd, on our clock: the
	// snapshot was true at that time or later. They do not advance while the mirror has no reason to poll. JobsAsOf is
	// zero if the known jobs prove nothing about nodes: see Queue.Partial.
	NodesAsOf, JobsAsOf time.Time
	// ControllerSince is Diag.CountersSince on our clock.
	ControllerSince time.Time
	// ClockOffset is added to the times in records, which are slurmctld's, to get ours.
	ClockOffset time.Duration

	// listedBy and readBy are when the polls were complete that read the last list of nodes, and the last of any node.
	listedBy, readBy time.Time
	// nodeTimes are the start times of reads of single nodes since the last list.
	nodeTimes map[string]time.Time
	// trackedAt is when a ChangeTracker was last asked.
	trackedAt time.Time
	// readAt is the start time of the last read of any node.
	readAt time.Time
	// statesBefore is, if Partial, the start time of the read of the job states before the nodes that JobsAsOf is about.
	// Nodes that were read earlier are not covered by both reads of the states.
	statesBefore time.Time
}

// ChangesAsOf is the time until which all changes of nodes are in the snapshot: that of the last list or, if it is
// later, of the last answer of a ChangeTracker. The latter proves nothing about a node: see NodeAsOf.
func (s *Snapshot) ChangesAsOf() time.Time {
	if s.trackedAt.After(s.NodesAsOf) {
		return s.trackedAt
	}
	return s.NodesAsOf
}

// NodeAsOf is the start time of the last successful read of a Slurm node, in a list or alone. A node that is not in the
// snapshot did not exist at that time.
func (s *Snapshot) NodeAsOf(name string) time.Time {
	if alone := s.nodeTimes[name]; alone.After(s.NodesAsOf) {
		return alone
	}
	return s.NodesAsOf
}

// ListedAt is when the poll was complete that listed the nodes last. The list began at NodesAsOf. With many jobs, their
// states are read after it, which takes seconds.
func (s *Snapshot) ListedAt() time.Time { return latest(s.NodesAsOf, s.listedBy) }

// NodeReadBy is when the poll was complete that read a Slurm node last. The read began at NodeAsOf.
func (s *Snapshot) NodeReadBy(name string) time.Time {
	switch asOf := s.NodeAsOf(name); {
	case asOf.Equal(s.NodesAsOf):
		return s.ListedAt()
	case asOf.Equal(s.readAt):
		return latest(asOf, s.readBy)
	default:
		return asOf
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// complete records when a poll was complete, if it has read nodes since an earlier snapshot.
func (s *Snapshot) complete(earlier *Snapshot) {
	if s.NodesAsOf.After(earlier.nodesAsOf()) {
		s.listedBy = time.Now()
	}
	if earlier == nil || s.readAt.After(earlier.readAt) {
		s.readBy = time.Now()
	}
}

// WithNodes returns a copy of a snapshot with records of single nodes that were read later, from a time on, and the
// names of those that differ.
func (s *Snapshot) WithNodes(read []Node, asOf time.Time) (next *Snapshot, changed []string) {
	next = new(*s)
	next.Nodes = slices.Clone(s.Nodes)
	next.nodeTimes = make(map[string]time.Time, len(s.nodeTimes)+len(read))
	maps.Copy(next.nodeTimes, s.nodeTimes)
	for i := range read {
		node := &read[i]
		next.nodeTimes[node.Name] = asOf
		index, known := findNode(next.Nodes, node.Name)
		switch {
		case !known:
			next.Nodes = slices.Insert(next.Nodes, index, new(*node))
		case next.Nodes[index].Equal(node):
			continue
		default:
			next.Nodes[index] = new(*node)
		}
		changed = append(changed, node.Name)
	}
	return next, changed
}

// nodesAsOf returns NodesAsOf, or zero without a snapshot.
func (s *Snapshot) nodesAsOf() time.Time {
	if s == nil {
		return time.Time{}
	}
	return s.NodesAsOf
}

// A Queue holds the job counts of a cluster.
type Queue struct {
	// Loads are the jobs of each Slurm node that has any.
	Loads map[string]Load
	// Partitions counts the jobs of each partition that has any: pending jobs and jobs that hold nodes. It is nil if
	// Partial: see Session.CountJobs.
	Partitions map[string]int
	// Waiting counts the pending jobs by partition and reason; a job with several partitions counts in each. It is nil if
	// Partial.
	Waiting map[Waiting]int
	// Pending and Running count the jobs of the cluster.
	Pending, Running int
	// Partial reports that there are too many jobs to list. Loads then covers every node whose record shows jobs and
	// every node with a job that its record may not show, but not every job of a node. A load with Job 0 is of unknown
	// jobs.
	Partial bool
	// Unplaced counts, if Partial, the jobs that are being cleaned up on unknown nodes.
	Unplaced int
	// IdentifiedBy is, if Partial, until when to wait for the details of jobs whose nodes are powering up; zero or past if
	// there are none, or if they cannot be read. Jobs that are only counted are never identified.
	IdentifiedBy time.Time
}

// A Load summarizes the jobs that hold a Slurm node.
type Load struct {
	// Running, Completing and Other count them; Other are suspended, starting or not understood.
	Running, Completing, Other int
	// Until is when the last of them ends at the latest, on our clock; zero if one of them has no time limit.
	Until time.Time
	// Job is the job that ends last; 0 if none of them is known.
	Job int64
	// Unlimited reports that a job has no time limit, or that none of the jobs is known.
	Unlimited bool
}

// Jobs returns the number of jobs that hold the node.
func (l Load) Jobs() int { return l.Running + l.Completing + l.Other }

func (l *Load) add(job *Job, end time.Time) {
	switch {
	case job.Completing():
		l.Completing++
	case job.Running():
		l.Running++
	default:
		l.Other++
	}
	switch {
	case l.Unlimited:
	case end.IsZero():
		l.Unlimited, l.Until, l.Job = true, time.Time{}, job.ID
	case end.After(l.Until):
		l.Until, l.Job = end, job.ID
	}
}

// Node finds a Slurm node by name.
func (s *Snapshot) Node(name string) (*Node, bool) {
	index, ok := findNode(s.Nodes, name)
	if !ok {
		return nil, false
	}
	return s.Nodes[index], true
}

func findNode(nodes []*Node, name string) (int, bool) {
	return slices.BinarySearchFunc(nodes, name,
		func(node *Node, name string) int { return strings.Compare(node.Name, name) })
}

// HasGRES reports whether a Slurm node has generic resources of a type, such as gpu.
func (s *Snapshot) HasGRES(gres string) bool {
	return slices.ContainsFunc(s.Nodes, func(node *Node) bool {
		for each := range strings.SplitSeq(node.GRES, ",") {
			if name, _, _ := strings.Cut(each, ":"); name == gres {
				return true
			}
		}
		return false
	})
}

// TakenAfter reports whether the whole snapshot was read after a moment, such as the acknowledgement of a drain. It is
// false for a nil snapshot.
func (s *Snapshot) TakenAfter(moment time.Time) bool {
	return s != nil && s.NodesAsOf.After(moment) && s.JobsAsOf.After(moment)
}

// A Vacancy is what a snapshot proves about whether a Slurm node may be disrupted.
type Vacancy uint8

// The vacancies. Only Drained, Off and, with care, Absent allow disruption.
const (
	// Uncertain: there is no snapshot, or it is too old to prove anything.
	Uncertain Vacancy = iota
	// Open: the node has no job, but can get one at any time.
	Open
	// Occupied: jobs hold the node, or its record shows an allocation.
	Occupied
	// Drained: the node accepts no jobs and no job holds it.
	Drained
	// Absent: slurmctld has no such node, and no job holds it. A slurmctld that crashed may have lost a node whose
	// slurmd still runs jobs: see Snapshot.ControllerSince.
	Absent
	// Off: the node is powered down, or powering down, and no job holds it. A job may be allocated to it, but starts only
	// when another slurmd has registered: see Node.PoweredOff.
	Off
)

// String returns the vacancy in one word.
func (v Vacancy) String() string {
	return [...]string{"uncertain", "open", "occupied", "drained", "absent", "off"}[v]
}

// LocalTime converts a time in a record, which is slurmctld's, to our clock.
func (s *Snapshot) LocalTime(recorded time.Time) time.Time { return localTime(recorded, s.ClockOffset) }

// Vacancy reports whether a Slurm node may be disrupted, as proved by data that was read after a moment. It checks the
// jobs and the node's record, because neither suffices: a record does not show suspended jobs, and jobs do not show
// drains.
func (s *Snapshot) Vacancy(name string, after time.Time) Vacancy {
	if s == nil || !s.NodeAsOf(name).After(after) || !s.JobsAsOf.After(after) {
		return Uncertain
	}
	node, known := s.Node(name)
	switch {
	case s.Partial && s.NodeAsOf(name).Before(s.statesBefore):
		return Uncertain
	case s.Loads[name].Jobs() > 0:
		return Occupied
	case !known && s.Unplaced > 0: // it may be the node of one of these jobs
		return Uncertain
	case !known:
		return Absent
	case node.Drained():
		return Drained
	case node.PoweredOff():
		return Off
	case node.Busy():
		return Occupied
	default:
		return Open
	}
}

// shareNodes sorts a list and reuses the old values of unchanged nodes. It returns the names of new, changed and
// deleted nodes.
func shareNodes(old []*Node, list []Node) (nodes []*Node, changed []string) {
	nodes = make([]*Node, len(list))
	for i := range list {
		nodes[i] = &list[i]
	}
	slices.SortFunc(nodes, func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
	next := 0 // index into old
	for i, node := range nodes {
		for next < len(old) && old[next].Name < node.Name {
			changed = append(changed, old[next].Name)
			next++
		}
		if next < len(old) && old[next].Name == node.Name {
			if old[next].Equal(node) {
				nodes[i] = old[next]
				next++
				continue
			}
			next++
		}
		changed = append(changed, node.Name)
		nodes[i] = new(*node) // a copy, so that one changed node does not keep the whole list in memory
	}
	for ; next < len(old); next++ {
		changed = append(changed, old[next].Name)
	}
	return nodes, changed
}

// maxNodes is Slurm's own limit of nodes per cluster, and so per job.
const maxNodes = 65536

// newQueue returns an empty queue, to which jobs are added with count.
func newQueue() Queue {
	return Queue{Loads: map[string]Load{}, Partitions: map[string]int{}, Waiting: map[Waiting]int{}}
}

// count counts jobs. A job whose nodes cannot be parsed invalidates the whole list. The offset is that of our clock.
func count(jobs []Job, offset time.Duration) (Queue, error) {
	queue := newQueue()
	for i := range jobs {
		if err := queue.count(&jobs[i], offset); err != nil {
			return Queue{}, err
		}
	}
	return queue, nil
}

// count adds a job.
func (q *Queue) count(job *Job, offset time.Duration) error {
	switch {
	case job.Pending():
		q.Pending++
	case job.Running():
		q.Running++
	}
	if job.Pending() || job.Holds() {
		for partition := range strings.SplitSeq(job.Partition, ",") {
			q.Partitions[partition]++
			if job.Pending() {
				q.Waiting[Waiting{partition, ParsePendingReason(job.Reason)}]++
			}
		}
	}
	if !job.Holds() {
		return nil
	}
	names, err := hostlist.Expand(job.Nodes, maxNodes)
	if err != nil {
		return err
	}
	q.place(job, names, offset)
	return nil
}

// place adds a job to the loads of its nodes.
func (q *Queue) place(job *Job, names []string, offset time.Duration) {
	end := localTime(job.End, offset)
	for _, name := range names {
		load := q.Loads[name]
		load.add(job, end)
		q.Loads[name] = load
	}
}

// changedLoads returns the nodes whose loads differ.
func changedLoads(old, current map[string]Load) []string {
	var changed []string
	for name, load := range current {
		if old[name] != load {
			changed = append(changed, name)
		}
	}
	for name := range old {
		if _, ok := current[name]; !ok {
			changed = append(changed, name)
		}
	}
	return changed
}
