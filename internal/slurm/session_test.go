package slurm

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func (s *scripted) EachJob(_ context.Context, each func(*Job) error) error {
	time.Sleep(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests["count"]++
	for i := range s.jobs {
		if err := each(&s.jobs[i]); err != nil {
			return err
		}
	}
	return s.err
}

func TestCountJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newScripted("a")
		cluster.jobs = append(queued(10, 1500), Job{ID: 7, States: []string{"RUNNING"}, Nodes: "a", Partition: "gpu"})
		session := &Session{Client: cluster}
		queue, err := session.CountJobs(t.Context())
		if err != nil || queue.Partitions["p"] != 1500 || queue.Partitions["gpu"] != 1 || queue.Loads["a"].Job != 7 {
			t.Errorf("queue is %+v: %v", queue, err)
		}
		if _, err := session.CountJobs(t.Context()); !errors.Is(err, TooLarge) || cluster.requests["count"] != 1 {
			t.Errorf("counted again at once: %v", err)
		}
		time.Sleep(countShare * time.Second)
		if _, err := session.CountJobs(t.Context()); err != nil {
			t.Errorf("not counted again: %v", err)
		}
		time.Sleep(countShare * time.Second)
		cluster.err = &Error{Kind: Timeout, Op: "count jobs"}
		if _, err := session.CountJobs(t.Context()); !errors.Is(err, Timeout) {
			t.Errorf("error is %v", err)
		}
		time.Sleep(countShare * time.Second)
		session.record(Poll{Queue: QueueReport{Jobs: maxCounted + 1}})
		if _, err := session.CountJobs(t.Context()); !errors.Is(err, TooLarge) ||
			!strings.Contains(err.Error(), "cancel them") {
			t.Errorf("error is %v", err)
		}
	})
}
