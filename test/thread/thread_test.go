package thread_test

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slurm-operator/slurm-operator/test/thread"
)

func TestRunNeverUsesTheMainThread(t *testing.T) {
	// Run ends the threads that it used, so with one processor the main thread is soon the one to serve new goroutines.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	served := false
	for range 2000 {
		done := make(chan struct{})
		go func() {
			served = served || unix.Gettid() == os.Getpid()
			close(done)
		}()
		<-done
		thread.Run(func() {
			if unix.Gettid() == os.Getpid() {
				t.Error("work ran on the main thread")
			}
		})
	}
	if !served {
		t.Error("the main thread never served a goroutine, so this test has shown nothing")
	}
}
