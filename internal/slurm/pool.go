package slurm

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Key identifies a cluster: the namespace and name of its Controller.
type Key struct {
	Namespace, Name string
}

// String returns namespace/name.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// An Event reports a change in a cluster: of a Slurm node or, if Node is empty, of the session's status.
type Event struct {
	Cluster Key
	Node    string
}

// A Pool holds one session per cluster. Create it with NewPool.
type Pool struct {
	options MirrorOptions
	events  subscriptions[Event]

	mu       sync.Mutex
	sessions map[Key]*Session
	closed   bool
	running  sync.WaitGroup
}

// NewPool returns a pool without sessions.
func NewPool(options MirrorOptions) *Pool {
	return &Pool{options: options, sessions: map[Key]*Session{}}
}

// Settings describe how to reach a cluster.
type Settings struct {
	// Identity is a digest of everything that Dial uses: equal settings have equal identities. It is never printed.
	Identity string
	// Dial creates the client. It does not connect.
	Dial func() (Client, error)
	// Wrap wraps the client for users of the session, for example to log their changes; it may be nil. The mirror uses
	// the unwrapped client, which may implement more than Client: see Counter and JobCounter.
	Wrap func(Client) Client
}

// Set ensures that there is a session with these settings. A session with other settings is replaced, and its state is
// dropped: it may be of another cluster. A session with the same settings is left alone.
func (p *Pool) Set(key Key, settings Settings) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.sessions[key]
	if p.closed || (old != nil && old.identity == settings.Identity) {
		return nil
	}
	client, err := settings.Dial()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	session := &Session{
		Client: client, Mirror: NewMirror(client, p.options), identity: settings.Identity, stop: stop,
		status: Status{Since: time.Now()},
	}
	if settings.Wrap != nil {
		session.Client = settings.Wrap(client)
	}
	p.sessions[key] = session
	p.running.Go(func() {
		session.run(ctx, func(events ...Event) { p.events.publish(func() {}, events...) }, key)
	})
	if old != nil {
		old.stop()
	}
	return nil
}

// Remove closes the session of a cluster, if there is one, and reports that as a change of its status.
func (p *Pool) Remove(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if session := p.sessions[key]; session != nil {
		session.stop()
		delete(p.sessions, key)
		p.events.publish(func() {}, Event{Cluster: key})
	}
}

// Get returns the session of a cluster. Do not keep it: it may be replaced.
func (p *Pool) Get(key Key) (*Session, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	session, ok := p.sessions[key]
	return session, ok
}

// Keys returns the clusters that have a session.
func (p *Pool) Keys() []Key {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Keys(p.sessions), func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// Subscribe collects the events of all clusters, including those added later.
func (p *Pool) Subscribe() *Subscription[Event] {
	return p.events.join(func() []Event { return nil })
}

// Close closes all sessions and waits for them. Set does nothing afterwards.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	for key, session := range p.sessions {
		session.stop()
		delete(p.sessions, key)
	}
	p.mu.Unlock()
	p.running.Wait()
}
