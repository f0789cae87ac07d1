// Package thread runs functions that change the thread they run on, such as by entering a namespace.
package thread

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Run runs work on a thread that ends with it, and waits for its end. It is never the main thread: Go cannot end that one,
// so whatever work did to it would stay, and the process itself would seem to be in the namespace that work entered.
func Run(work func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // without an unlock, the thread ends with the goroutine
		if unix.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread()
			Run(work) // on another thread, since this one is held here meanwhile
			return
		}
		work()
	}()
	<-done
}
