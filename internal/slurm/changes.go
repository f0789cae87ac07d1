package slurm

import (
	"context"
	"slices"
	"time"
)

// NodeChanges says which Slurm nodes have changed.
type NodeChanges struct {
	// Cursor is for the next question: everything that changes after this answer is in the next one.
	Cursor string `json:"cursor"`
	// Names are the nodes that were created, changed or deleted since the cursor of the question.
	Names []string `json:"names,omitempty"`
	// Unknown reports that the changes are not known, or too many: list all nodes.
	Unknown bool `json:"unknown,omitempty"`
}

// A ChangeTracker is a Reader that can also say which nodes have changed. A mirror reads these nodes then, and nothing
// else follows from the answer: a wrong one only delays what a list would show.
type ChangeTracker interface {
	NodeChanges(ctx context.Context, since string) (NodeChanges, error)
}

const (
	// trackerShare limits the time that the tracker spends on answers to 1/trackerShare.
	trackerShare = 3
	// trackerPause is how long the tracker is not asked again after it has failed. Lists replace it meanwhile.
	trackerPause = time.Minute
	// trackerQuiet limits the time that the tracker spends on answers to 1/trackerQuiet while nothing indicates a change.
	trackerQuiet = 100
)

// A trackingState is where the next question to a ChangeTracker starts.
type trackingState struct {
	// cursor covers the changes after a time, which only a list after it completes.
	cursor string
	after  time.Time
	// next is when the tracker may be asked again.
	next time.Time
}

// usable reports whether the tracker's next answer contains everything that a snapshot lacks.
func (t *trackingState) usable(last *Snapshot) bool {
	return t.cursor != "" && last.NodesAsOf.After(t.after)
}

// readTracked reads the nodes that have changed according to the tracker alone, together with the marked ones and those
// whose jobs have changed. If it reports false, only a list of all nodes shows what has changed.
func (m *Mirror) readTracked(ctx context.Context, next *Snapshot, jobsChanged []string, counters counters) (
	changed []string, complete bool, err error) {
	began := time.Now()
	tracker, ok := m.client.(ChangeTracker)
	usable := m.tracking.usable(next)
	m.growing = m.grows(next, m.marked.all())
	if !ok || m.growing || len(next.Nodes) < minListed || began.Before(m.tracking.next) ||
		began.Sub(next.NodesAsOf) >= m.options.MaxQuiet || (!usable && !m.mayList()) {
		return nil, false, nil
	}
	since := ""
	if usable {
		since = m.tracking.cursor
	}
	answer, err := tracker.NodeChanges(ctx, since)
	took := time.Since(began)
	m.apart += took
	m.tracking.next = began.Add(trackerShare * took)
	if err != nil {
		m.tracking.next = began.Add(trackerPause)
		return nil, false, nil //nolint:nilerr // the tracker only replaces lists
	}
	m.marked.add(jobsChanged)
	marked := m.marked.all()
	names := slices.Concat(answer.Names, marked)
	slices.Sort(names)
	names = slices.Compact(names)
	if !usable || answer.Unknown || len(answer.Names) > maxMarked || len(marked) > maxMarked ||
		m.grows(next, names) {
		m.tracking.cursor, m.tracking.after = answer.Cursor, began
		return nil, false, nil
	}
	nodes, _, err := m.readAlone(ctx, names)
	if err != nil {
		return nil, false, err
	}
	if isMissing(next, names, nodes) {
		return nil, false, nil
	}
	changed = m.merge(next, nodes, began)
	next.trackedAt, m.tracking.cursor = began, answer.Cursor
	m.counters = counters.all
	if len(changed) == 0 {
		m.quietUntil = began.Add(min(max(trackerQuiet*took, m.options.Slow), m.options.MaxQuiet))
	}
	return changed, true, nil
}

// isMissing reports whether Slurm refused one of the nodes that a snapshot has: only a list proves that it is deleted.
func isMissing(last *Snapshot, names []string, read []Node) bool {
	found := make(map[string]bool, len(read))
	for i := range read {
		found[read[i].Name] = true
	}
	return slices.ContainsFunc(names, func(name string) bool {
		_, known := last.Node(name)
		return known && !found[name]
	})
}
