package thread_test

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slurm-operator/slurm-operator/test/thread"
)

func TestRunNeverUsesTheMainThread(t *testing.T) {
	// Run terminates the threads that it used, so with one processor the main thread soon runs new goroutines.
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
		t.Error("the main thread never ran a goroutine, so this test proves nothing")
	}
}
