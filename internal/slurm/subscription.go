package slurm

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// A Subscription collects what has changed until its owner takes it. It holds each thing once, so an owner who is slow
// delays nobody, misses nothing and needs no more memory than there are things.
type Subscription[T comparable] struct {
	ready chan struct{}
	leave func()

	mu      sync.Mutex
	changed map[T]struct{}
}

// Ready gets a value when there is something to take.
func (s *Subscription[T]) Ready() <-chan struct{} { return s.ready }

// Take returns what has changed since the last time, in no order. What it is now is in the mirror's snapshot.
func (s *Subscription[T]) Take() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := slices.Collect(maps.Keys(s.changed))
	clear(s.changed)
	return changed
}

// Follow hands over what has changed whenever something has, until the context ends, and the subscription with it.
func (s *Subscription[T]) Follow(ctx context.Context, take func(changed []T)) {
	defer s.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.ready:
			take(s.Take())
		}
	}
}

// Close ends the subscription.
func (s *Subscription[T]) Close() { s.leave() }

// add notes changes; it never waits.
func (s *Subscription[T]) add(changed ...T) {
	if len(changed) == 0 {
		return
	}
	s.mu.Lock()
	for _, thing := range changed {
		s.changed[thing] = struct{}{}
	}
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default: // it has not yet seen the last one
	}
}

// subscriptions are all subscriptions to one thing.
type subscriptions[T comparable] struct {
	mu      sync.Mutex
	members map[*Subscription[T]]struct{}
}

// join adds a subscription that begins with what the function returns; nothing is published in between.
func (s *subscriptions[T]) join(first func() []T) *Subscription[T] {
	joined := &Subscription[T]{ready: make(chan struct{}, 1), changed: map[T]struct{}{}}
	joined.leave = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.members, joined)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members == nil {
		s.members = map[*Subscription[T]]struct{}{}
	}
	s.members[joined] = struct{}{}
	joined.add(first()...)
	return joined
}

// publish makes something true and tells all members about it.
func (s *subscriptions[T]) publish(makeTrue func(), changed ...T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	makeTrue()
	for member := range s.members {
		member.add(changed...)
	}
}
