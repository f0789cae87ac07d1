package thread

import (
	"bytes"
	"os"
)

// AllStopped reports whether all threads have stopped or exited, given their files /proc/PID/task/TID/stat. A thread
// stops only when it gets to run, which on a busy computer can be after its next answer.
func AllStopped(stats []string) bool {
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has exited
		}
		// The state is the letter after the command's name in parentheses.
		_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
		if len(state) > 0 && !bytes.ContainsAny(state[:1], "TZX") {
			return false
		}
	}
	return true
}
