package slurm

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// A Subscription collects changes until its owner takes them. It holds each item once, so a slow owner delays no other,
// misses nothing, and memory is bounded by the number of items.
type Subscription[T comparable] struct {
	ready chan struct{}
	leave func()

	mu      sync.Mutex
	changed map[T]struct{}
}

// Ready receives a value when there is something to take.
func (s *Subscription[T]) Ready() <-chan struct{} { return s.ready }

// Take returns what has changed since the last call, in no particular order. The current state is in the mirror's
// snapshot.
func (s *Subscription[T]) Take() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := slices.Collect(maps.Keys(s.changed))
	clear(s.changed)
	return changed
}

// Follow calls take for all changes until the context is done, then closes the subscription.
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

// add records changes; it never blocks.
func (s *Subscription[T]) add(changed ...T) {
	if len(changed) == 0 {
		return
	}
	s.mu.Lock()
	for _, item := range changed {
		s.changed[item] = struct{}{}
	}
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default: // the previous signal is still pending
	}
}

// subscriptions are all subscriptions to one source.
type subscriptions[T comparable] struct {
	mu      sync.Mutex
	members map[*Subscription[T]]struct{}
}

// join adds a subscription that starts with the items that initial returns; nothing is published in between.
func (s *subscriptions[T]) join(initial func() []T) *Subscription[T] {
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
	joined.add(initial()...)
	return joined
}

// publish calls update and reports the changes to all members, atomically for join.
func (s *subscriptions[T]) publish(update func(), changed ...T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	update()
	for member := range s.members {
		member.add(changed...)
	}
}
