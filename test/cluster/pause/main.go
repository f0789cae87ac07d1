// Command pause does nothing until it gets a signal. It keeps the namespaces of a pod alive.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	// As PID 1 of a shared PID namespace it has to reap orphaned zombies.
	dead := make(chan os.Signal, 16)
	signal.Notify(dead, syscall.SIGCHLD)
	for {
		select {
		case <-end:
			return
		case <-dead:
			for {
				if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
					break
				}
			}
		}
	}
}
