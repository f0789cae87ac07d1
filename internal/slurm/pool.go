package slurm

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Key names a cluster: the namespace and the name of its Controller.
type Key struct {
	Namespace, Name string
}

// String is the key as Kubernetes prints it.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// An Event says that something about a cluster has changed: a node, or, without one, the state of the session.
type Event struct {
	Cluster Key
	Node    string
}

// A Pool keeps one session for each cluster. The zero value is not of use: see NewPool.
type Pool struct {
	options MirrorOptions
	events  subscriptions[Event]

	mu       sync.Mutex
	sessions map[Key]*Session
	closed   bool
	running  sync.WaitGroup
}

// NewPool makes a pool without sessions.
func NewPool(options MirrorOptions) *Pool {
	return &Pool{options: options, sessions: map[Key]*Session{}}
}

// Settings say how to reach a cluster.
type Settings struct {
	// Identity is equal for settings that are the same: a digest of everything that Dial uses. It is never shown.
	Identity string
	// Dial makes the client. It does not connect.
	Dial func() (Client, error)
	// Wrap is put around the client for those who use the session, as to log what they change; nil for nothing. The mirror reads through the
	// client itself, which may be able to do more than a Client can: see Counter and JobCounter.
	Wrap func(Client) Client
}

// Set makes sure that there is a session with these settings. One with other settings is replaced, and everything that
// was known through it is forgotten: it may have been of another cluster. One with the same settings is left alone.
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

// Remove ends the session of a cluster, if there is one.
func (p *Pool) Remove(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if session := p.sessions[key]; session != nil {
		session.stop()
		delete(p.sessions, key)
	}
}

// Get returns the session of a cluster. Do not keep it: it may be replaced.
func (p *Pool) Get(key Key) (*Session, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	session, ok := p.sessions[key]
	return session, ok
}

// Keys lists the clusters that have a session.
func (p *Pool) Keys() []Key {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Keys(p.sessions), func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// Subscribe starts to collect events of all clusters, present and to come.
func (p *Pool) Subscribe() *Subscription[Event] {
	return p.events.join(func() []Event { return nil })
}

// Close ends all sessions and waits until they have ended. The pool takes no more.
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
