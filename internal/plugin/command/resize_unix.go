//go:build !windows

package command

import (
	"os"
	"syscall"
)

// resized are the signals about a changed size of the terminal.
var resized = []os.Signal{syscall.SIGWINCH}
