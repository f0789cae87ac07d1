package simulated

import (
	"testing"
	"time"
)

func TestPeakMemoryIsInBytes(t *testing.T) {
	got, err := peakMemory("Name:\tetcd\nVmPeak:\t  999 kB\nVmHWM:\t     28 kB\nVmRSS:\t     20 kB\n")
	if err != nil || got != 28<<10 {
		t.Errorf("got %d, %v; want %d", got, err, 28<<10)
	}
	if _, err := peakMemory("Name:\tetcd\n"); err == nil {
		t.Error("a status without a peak was accepted")
	}
}

func TestCPUTimeAddsUserAndKernel(t *testing.T) {
	got, err := cpuTime("42 (a (strange) name) S 1 42 42 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0 100 0 0")
	if want := 2 * time.Second; err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	if _, err := cpuTime("42 (name) S 1"); err == nil {
		t.Error("a truncated line was accepted")
	}
}
