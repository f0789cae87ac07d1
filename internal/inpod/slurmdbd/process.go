package slurmdbd

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// handlesTermination reports whether a process has a handler for SIGTERM. slurmdbd installs it after it has converted
// its database, and before it serves clients: this shows that it has started at any log level.
func handlesTermination(process int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(process) + "/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if mask, found := strings.CutPrefix(line, "SigCgt:"); found {
			caught, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && caught&(1<<(syscall.SIGTERM-1)) != 0
		}
	}
	return false
}
