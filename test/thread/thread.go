// Package thread runs functions that change their OS thread, for example by entering a namespace.
package thread

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Run runs work on a thread that exits afterwards, and waits for it. It is never the main thread: Go cannot terminate
// that one, so changes to it would stay, and the process would seem to be in the namespace that work entered.
func Run(work func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // without an unlock, the thread exits with the goroutine
		if unix.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread()
			Run(work) // on another thread, because this one is locked here meanwhile
			return
		}
		work()
	}()
	<-done
}
