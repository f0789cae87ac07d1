package slurm

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Limits of reads of single nodes.
const (
	// singleConcurrency is how many nodes are read in parallel.
	singleConcurrency = 4
	// minListed is the size of a cluster from which on single nodes are read instead of a list: a list of fewer nodes
	// takes some tenths of a second.
	minListed = 1000
	// singleCost is how many nodes of a list cost as much as one that is read alone.
	singleCost = 32
	// maxListAge is the age up to which a list, or an answer of the tracker, is complete enough for decisions about single
	// nodes: these also depend on how many other nodes are available.
	maxListAge = time.Minute
	// maxMarked is how many nodes are read alone between two lists, for at most markedFor.
	maxMarked = 256
	markedFor = 15 * time.Second
	// maxNew is how many nodes that no list has shown are read alone: while a large NodeSet is created, the number of
	// requests must not grow with it.
	maxNew = 16
)

// isCheaper reports whether a demand for some nodes is met by reading them alone. All of them must be in the last list:
// only another list can show that one does not exist.
func (m *Mirror) isCheaper(last *Snapshot, nodes []string) bool {
	if len(nodes) == 0 || len(last.Nodes) < minListed || len(nodes)*singleCost > len(last.Nodes) ||
		time.Since(last.ChangesAsOf()) > maxListAge {
		return false
	}
	return !slices.ContainsFunc(nodes, func(name string) bool {
		_, known := last.Node(name)
		return !known
	})
}

// readDemanded reads nodes alone. If Slurm refuses one of them, it may not exist any more, and all nodes are listed.
func (m *Mirror) readDemanded(ctx context.Context, next *Snapshot, names []string) ([]string, error) {
	began := time.Now()
	nodes, refused, err := m.readAlone(ctx, names)
	switch {
	case err != nil:
		return nil, err
	case refused:
		return m.readNodes(ctx, next)
	}
	return m.merge(next, nodes, began), nil
}

// readMarked reads the marked nodes alone, and those whose jobs have changed. One that Slurm refuses may not have
// registered yet.
func (m *Mirror) readMarked(ctx context.Context, next *Snapshot, changed []string) ([]string, error) {
	if len(next.Nodes) < minListed {
		return nil, nil
	}
	began := time.Now()
	m.marked.add(changed)
	names := m.marked.all()
	m.growing = m.grows(next, names)
	if len(names) == 0 || len(names) > maxMarked || m.growing {
		return nil, nil
	}
	nodes, _, err := m.readAlone(ctx, names)
	if err != nil || len(nodes) == 0 {
		return nil, err
	}
	return m.merge(next, nodes, began), nil
}

// grows reports whether new nodes among those with the names wait for a list, because there are many, or were many in
// the last poll.
func (m *Mirror) grows(last *Snapshot, names []string) bool {
	unseen := len(newTo(last, names))
	return unseen > maxNew || m.burst && unseen > 0
}

// newTo returns those of some nodes that a snapshot does not have.
func newTo(last *Snapshot, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, known := last.Node(name)
		return known
	})
}

// merge adds nodes that were read alone to a snapshot, and returns those that have changed. New ones are no longer
// marked: they have registered.
func (m *Mirror) merge(next *Snapshot, nodes []Node, began time.Time) []string {
	read := make([]string, len(nodes))
	for i := range nodes {
		read[i] = nodes[i].Name
	}
	m.marked.remove(newTo(next, read))
	updated, changed := next.WithNodes(nodes, began)
	*next = *updated
	if len(nodes) > 0 {
		next.readAt = began
	}
	return changed
}

// readAlone reads nodes one by one, some in parallel. It reports whether Slurm refused some of them, and fails if one
// could not be read for another reason.
func (m *Mirror) readAlone(ctx context.Context, names []string) (nodes []Node, refused bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var readers sync.WaitGroup
	for first := range min(singleConcurrency, len(names)) {
		readers.Go(func() {
			for i := first; i < len(names) && ctx.Err() == nil; i += singleConcurrency {
				node, err := m.client.Node(ctx, names[i])
				mu.Lock()
				switch {
				case err == nil:
					nodes = append(nodes, node)
				case errors.Is(err, Rejected):
					refused = true
				default:
					cancel(err)
				}
				mu.Unlock()
			}
		})
	}
	readers.Wait()
	return nodes, refused, context.Cause(ctx)
}

// marks are the nodes that are read alone between two lists: those that the operator has changed or waits for, and
// those whose jobs have changed. They are few: if there are many, they wait for the next list.
type marks struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (m *marks) add(names []string) {
	if len(names) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.until == nil {
		m.until = map[string]time.Time{}
	}
	for _, name := range names {
		if len(m.until) <= maxMarked {
			m.until[name] = time.Now().Add(markedFor)
		}
	}
}

// all returns the marked nodes, and forgets those that were marked too long ago.
func (m *marks) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	var names []string
	for name, until := range m.until {
		if now.After(until) {
			delete(m.until, name)
		} else {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// remove forgets nodes, because a list has shown them.
func (m *marks) remove(names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		delete(m.until, name)
	}
}
