package slurmdbd

import (
	"bytes"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// A complaint about the database, and the line that says that there is none. Both versions of Slurm say them alike.
var (
	failed  = regexp.MustCompile(`mysql_real_connect failed: (\d+) (.*)`)
	started = regexp.MustCompile(`slurmdbd version \S+ started`)
)

// memory is how long a complaint is believed. While the database is away slurmdbd repeats it at every attempt: after 5
// seconds, or 30 more when the server does not even refuse. When the database is back, slurmdbd says nothing.
const memory = 2 * time.Minute

// maxLine is how much of a line is looked at.
const maxLine = 2048

// A watch reads a log as it is written.
type watch struct {
	now func() time.Time

	mutex sync.Mutex
	line  []byte // the last one, as far as it has been written
	last  Report
	since time.Time
}

// Write never fails: slurmdbd's log must not.
func (w *watch) Write(data []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for line := range bytes.Lines(data) {
		w.line = append(w.line, line[:min(len(line), maxLine-min(len(w.line), maxLine))]...)
		if line[len(line)-1] == '\n' {
			w.read(bytes.TrimSpace(w.line))
			w.line = w.line[:0]
		}
	}
	return len(data), nil
}

func (w *watch) read(line []byte) {
	if match := failed.FindSubmatch(line); match != nil {
		code, _ := strconv.Atoi(string(match[1])) // they are digits
		w.last, w.since = Report{Code: code, Text: string(match[2])}, w.now()
	} else if started.Match(line) {
		w.last = Report{}
	}
}

// Report is the last complaint, unless it is too old.
func (w *watch) Report() Report {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.now().Sub(w.since) > memory {
		return Report{}
	}
	return w.last
}
