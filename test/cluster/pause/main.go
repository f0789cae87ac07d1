// Command pause does nothing until it is told to end. It holds the namespaces of a pod open.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	// As the first process of a shared namespace it inherits the dead of others.
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
