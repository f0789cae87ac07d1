package slurmtest

import (
	"sync/atomic"
	"testing"
	"time"
)

func TestSteadyEndsWithTheNextJob(t *testing.T) {
	server := New(t, Release2605)
	began := time.Now()
	var passed atomic.Int64
	server.SetClock(func() time.Time { return began.Add(time.Duration(passed.Load())) })
	server.AddNodes("gpu-0")
	empty, until := server.Steady()
	if until >= 0 {
		t.Errorf("an idle Slurm changes in %s", until)
	}
	if _, err := server.Submitter("root").Submit(t.Context(), JobRequest{
		Name: "short", Script: "#!/bin/sh\nsleep 5", Nodes: 1,
	}); err != nil {
		t.Fatal(err)
	}
	busy, until := server.Steady()
	if busy == empty || until != 5*time.Second {
		t.Errorf("a job of 5 s changes Slurm in %s, from\n%s", until, busy)
	}
	passed.Store(int64(5 * time.Second))
	if ended, until := server.Steady(); ended == busy || until >= 0 {
		t.Errorf("without the job, Slurm changes in %s, from\n%s", until, ended)
	}
}
