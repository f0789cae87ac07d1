//nolint:thelper // these are the tests of the suite, not helpers
package contract

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

func testJobs(t *testing.T, c cluster) {
	id := c.submit(t, "node-1", "sleep 1000")
	list, err := c.Jobs(t.Context(), 0)
	must(t, err)
	cursor := list.Cursor
	eventually(t, "unchanged jobs", func() error {
		list, err := c.Jobs(t.Context(), cursor)
		if err == nil && !list.Unchanged {
			cursor = list.Cursor
			err = errors.New("they have changed")
		}
		return err
	})
	states := c.states(t)
	want := slurm.JobState{ID: strconv.FormatInt(id, 10), States: []string{"RUNNING"}}
	if !slices.ContainsFunc(states, func(s slurm.JobState) bool { return cmp.Equal(s, want) }) {
		t.Errorf("%+v is not among the states %+v", want, states)
	}
	must(t, c.submitter().Cancel(t.Context(), id))
	eventually(t, "job to be cancelled", func() error {
		list, err := c.Jobs(t.Context(), cursor)
		if err != nil {
			return err
		}
		for _, job := range list.Jobs {
			if job.ID == id && !job.Holds() && slices.Contains(job.States, "CANCELLED") {
				return nil
			}
		}
		return fmt.Errorf("jobs are %+v", list.Jobs)
	})
	// Cancelling a job that does not exist succeeds.
	must(t, c.submitter().Cancel(t.Context(), 999999))
}

// The job states lead to the details: each starts with a job number, also for array tasks.
func testJobStates(t *testing.T, c cluster) {
	c.waitIdle(t)
	array, err := c.submitter().Submit(t.Context(), slurmtest.JobRequest{
		Name: "array", Script: "#!/bin/sh\nsleep 1000", Nodes: 1, RequiredNodes: []string{"node-0"},
		TimeLimit: 10 * time.Minute, Array: "0-9",
	})
	must(t, err)
	running := c.runningTasks(t, array, 10)
	for _, state := range running {
		id, _ := state.Number()
		job, err := c.Job(t.Context(), id)
		must(t, err)
		if id == array || !strings.Contains(state.ID, "_") || job.ID != id || !job.Running() || job.Nodes != "node-0" ||
			job.End.IsZero() {
			t.Errorf("task %s is %+v", state.ID, job)
		}
	}
	eventually(t, "the array to wait for resources", func() error {
		job, err := c.Job(t.Context(), array)
		if err == nil && (!job.Pending() || slurm.ParsePendingReason(job.Reason) != slurm.PendingResources) {
			err = fmt.Errorf("it is %+v", job)
		}
		return err
	})
	suspended, _ := running[0].Number()
	c.suspend(t, suspended)
	running[0].States = []string{"SUSPENDED"}
	if states := c.states(t); !slices.ContainsFunc(states,
		func(s slurm.JobState) bool { return cmp.Equal(s, running[0]) }) {
		t.Errorf("%+v is not among the states %+v", running[0], states)
	}
	if job, err := c.Job(t.Context(), suspended); err != nil || !job.Holds() || job.Running() || job.Nodes != "node-0" {
		t.Errorf("the suspended task is %+v: %v", job, err)
	}
	c.resume(t, suspended)
	must(t, c.submitter().Cancel(t.Context(), array))
	if _, err := c.Job(t.Context(), 999999); !slurm.ErrorNumber(err, slurm.NumberInvalidJob) ||
		errors.Is(err, slurm.NotFound) {
		t.Errorf("a job that does not exist: %v", err)
	}
	c.waitIdle(t)
}

// runningTasks waits until a task of an array runs. The others are pending under the number of the array.
func (c cluster) runningTasks(t *testing.T, array int64, tasks int) []slurm.JobState {
	t.Helper()
	var running []slurm.JobState
	eventually(t, "tasks to run", func() error {
		running = nil
		waiting := 0
		for _, state := range c.states(t) {
			number, err := state.Number()
			switch job := (slurm.Job{States: state.States}); {
			case err != nil:
				return err
			case job.Running():
				running = append(running, state)
			case job.Pending() && number == array:
				waiting++
			}
		}
		if len(running) == 0 || len(running)+waiting != tasks {
			return fmt.Errorf("%+v run, %d wait", running, waiting)
		}
		return nil
	})
	return running
}

// states returns the states of all jobs.
func (c cluster) states(t *testing.T) []slurm.JobState {
	t.Helper()
	var states []slurm.JobState
	_, err := c.JobStates(t.Context(), func(state slurm.JobState) error {
		states = append(states, state)
		return nil
	})
	must(t, err)
	return states
}
