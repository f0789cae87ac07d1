package slurm

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A scripted cluster answers from memory, on the test's clock.
type scripted struct {
	Client // nil; only for methods that are not scripted
	mu     sync.Mutex
	nodes  map[string]Node
	jobs   []Job
	index  map[int64]int // job number to index in jobs
	since  time.Time
	skew   time.Duration // offset of its clock
	rpcs   map[string]int64
	// seconds of the last changes
	nodesAt, jobsAt int64
	err             error
	nodesErr        error
	nodeErr         error
	jobErr          error
	statesErr       error
	afterStates     func()        // runs after the job states are sent
	afterNodes      func()        // runs after the nodes are sent
	size            int64         // bytes of a node list
	slow, slowJobs  time.Duration // durations of a list of nodes and of jobs
	requests        map[string]int
	sent            int64
}

func newScripted(names ...string) *scripted {
	s := &scripted{
		nodes: map[string]Node{}, rpcs: map[string]int64{}, requests: map[string]int{}, since: time.Now(), size: 1000,
		nodesAt: time.Now().Unix(), jobsAt: time.Now().Unix(),
	}
	for _, name := range names {
		s.nodes[name] = Node{Name: name, State: StateIdle}
	}
	return s
}

func (s *scripted) Info() Info { return Info{API: "v0.0.45"} }

func (s *scripted) Diag(context.Context) (Diag, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests["diag"]++
	rpcs := map[string]int64{"REQUEST_STATS_INFO": int64(s.requests["diag"])}
	maps.Copy(rpcs, s.rpcs)
	s.sent += 4000
	return Diag{Now: time.Now().Add(s.skew), CountersSince: s.since, RPCs: rpcs}, s.err
}

func (s *scripted) Nodes(_ context.Context, since Cursor) (NodeList, error) {
	time.Sleep(s.slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests["nodes"]++
	if s.err != nil || s.nodesErr != nil {
		return NodeList{}, errors.Join(s.err, s.nodesErr)
	}
	if int64(since)-1 >= s.nodesAt {
		return NodeList{Unchanged: true, Cursor: since}, nil
	}
	if s.afterNodes != nil {
		defer s.afterNodes()
	}
	list := NodeList{Cursor: Cursor(time.Now().Unix()), Bytes: s.size}
	for _, node := range s.nodes {
		list.Nodes = append(list.Nodes, node)
	}
	s.requests["full"]++
	s.sent += s.size
	return list, nil
}

func (s *scripted) Node(_ context.Context, name string) (Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests["node"]++
	s.sent += 2000
	if err := errors.Join(s.err, s.nodeErr); err != nil {
		return Node{}, err
	}
	node, ok := s.nodes[name]
	if !ok {
		return Node{}, &Error{Kind: Rejected, Op: "get node " + name}
	}
	return node, nil
}

func (s *scripted) Jobs(_ context.Context, since Cursor) (JobList, error) {
	time.Sleep(s.slowJobs)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests["jobs"]++
	s.sent += 600
	if s.err != nil {
		return JobList{}, s.err
	}
	if int64(since)-1 >= s.jobsAt {
		return JobList{Unchanged: true, Cursor: since}, nil
	}
	s.sent += int64(len(s.jobs)) * 4820
	return JobList{Jobs: slices.Clone(s.jobs), Cursor: Cursor(time.Now().Unix()), Bytes: 600}, nil
}

func (s *scripted) JobStates(_ context.Context, each func(JobState) error) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests["states"]++
	if s.afterStates != nil {
		defer s.afterStates()
	}
	bytes := int64(500 + 37*len(s.jobs))
	s.sent += bytes
	if err := errors.Join(s.err, s.statesErr); err != nil {
		return 0, err
	}
	for i := range s.jobs {
		if err := each(JobState{ID: strconv.FormatInt(s.jobs[i].ID, 10), States: s.jobs[i].States}); err != nil {
			return 0, err
		}
	}
	return bytes, nil
}

func (s *scripted) Job(_ context.Context, id int64) (Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests["job"]++
	s.sent += 5000
	if err := errors.Join(s.err, s.jobErr); err != nil {
		return Job{}, err
	}
	if len(s.index) != len(s.jobs) {
		s.index = map[int64]int{}
		for i := range s.jobs {
			s.index[s.jobs[i].ID] = i
		}
	}
	if i, ok := s.index[id]; ok {
		return s.jobs[i], nil
	}
	return Job{}, &Error{Kind: Rejected, Op: "x", Reasons: []Reason{{Number: NumberInvalidJob}}}
}

// change changes a node like a request to slurmctld.
func (s *scripted) change(name string, change func(*Node)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node := s.nodes[name]
	node.Name = name
	change(&node)
	s.nodes[name] = node
	s.nodesAt = time.Now().Unix()
	s.rpcs["REQUEST_UPDATE_NODE"]++
}

// set changes the script under the lock.
func (s *scripted) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// count returns the number of requests of a kind.
func (s *scripted) count(request string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[request]
}

// polls returns the number of polls.
func (s *scripted) polls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests["diag"]
}

// runMirror runs a mirror in the test's synctest bubble.
func runMirror(t *testing.T, client Reader) *Mirror {
	t.Helper()
	return runMirrorWith(t, client, MirrorOptions{})
}

func runMirrorWith(t *testing.T, client Reader, options MirrorOptions) *Mirror {
	t.Helper()
	mirror := NewMirror(client, options)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { mirror.Run(ctx, func(Poll) {}) })
	t.Cleanup(func() { stop(); running.Wait() })
	return mirror
}
