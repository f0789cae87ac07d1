package slurmcli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// holding is a job with two GPUs, as squeue prints it with the fields of allocationFields.
var holding = []string{
	"4711", "alice", "physics", "RUNNING", "cpu=16,mem=62.50G,node=2,billing=16,gres/gpu=2,gres/gpu:h100=2", "2", "4",
	"N/A", "gres/gpu:h100:1", "N/A",
}

func TestAllocationsAreParsed(t *testing.T) {
	jobs, err := parseAllocations(printed(holding...) + printed(with(with(holding, 3, "PENDING"), 0, "4712_[0-9]")...))
	want := []Allocation{
		{User: "alice", Account: "physics", Jobs: 1, CPUs: 16, Memory: 64000, GPUs: 2},
		{User: "alice", Account: "physics", Pending: true, Jobs: 10, CPUs: 16, Memory: 64000, GPUs: 2},
	}
	if diff := cmp.Diff(want, jobs); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestGPUsThatSlurmDoesNotCountAreThoseRequested(t *testing.T) {
	for name, test := range map[string]struct {
		field int
		value string
		want  int64
	}{
		"none":              {8, "(null)", 0},
		"per node":          {8, "gres/gpu:2", 4},
		"per node, by type": {8, "gres/gpu:h100:3", 6},
		"with other devices": {
			8, "gres/shard:4,gres/gpu", 2,
		},
		"in the words of 20.11": {8, "gres:gpu:1", 2},
		"other devices only":    {8, "gres/gpu_mem:4", 0},
		"per job":               {7, "gres/gpu:5", 5},
		"per task":              {9, "gres/gpu=2", 8},
	} {
		job := with(with(holding, 4, "cpu=1,mem=100M"), 8, "N/A")
		jobs, err := parseAllocations(printed(with(job, test.field, test.value)...))
		if err != nil || len(jobs) != 1 || jobs[0].GPUs != test.want || jobs[0].GPUsRequested != (test.want > 0) {
			t.Errorf("%s: %+v, %v; want %d", name, jobs, err, test.want)
		}
	}
}

func TestEntryOfAnArrayStandsForItsTasks(t *testing.T) {
	for id, want := range map[string]int{
		"7": 1, "7_3": 1, "7+1": 1, "7_[3]": 1, "7_[3-9]": 7, "7_[3-9%2]": 7, "7_[1,3,5-9:2]": 5, "7_[1,2,...": 3,
	} {
		if got := countTasks(id); got != want {
			t.Errorf("%s: %d, want %d", id, got, want)
		}
	}
}

func TestMemoryIsInMiB(t *testing.T) {
	for value, want := range map[string]int64{"512": 512, "2048K": 2, "512M": 512, "1.50G": 1536, "2T": 2 << 20} {
		if got, err := parseMemory(value); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", value, got, err, want)
		}
	}
}

func TestUnexpectedAllocationsAreAnError(t *testing.T) {
	for name, output := range map[string]string{
		"too few fields": printed(holding[1:]...),
		"no number":      printed(with(holding, 4, "cpu=many")...),
		"no size":        printed(with(holding, 4, "mem=?")...),
		"a message":      "slurm_load_jobs error: Unable to contact slurm controller",
	} {
		if jobs, err := parseAllocations(output); err == nil || !strings.HasPrefix(err.Error(), "reading jobs: ") {
			t.Errorf("%s: %+v, %v", name, jobs, err)
		}
	}
}

func TestLoadsAreParsed(t *testing.T) {
	loads, err := parseLoads([]byte(`{"nodes": [
		{"name": "gpu-0", "cpu_load": 1250, "free_mem": {"set": true, "infinite": false, "number": 5000}},
		{"name": "gpu-1", "cpu_load": 4294967294, "free_mem": {"set": false, "infinite": false, "number": 0}},
		{"name": "gpu-2", "cpu_load": {"set": true, "infinite": false, "number": 7}}]}`))
	want := map[string]Load{
		"gpu-0": {CPUs: new(12.5), FreeMemory: new(int64(5000))}, "gpu-1": {}, "gpu-2": {CPUs: new(0.07)},
	}
	if diff := cmp.Diff(want, loads); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}
