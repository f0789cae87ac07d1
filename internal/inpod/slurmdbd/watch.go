package slurmdbd

import (
	"bytes"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// A database error, and the line that shows that there is none. The messages are the same in all supported releases.
var (
	failed  = regexp.MustCompile(`mysql_real_connect failed: (\d+) (.*)`)
	started = regexp.MustCompile(`slurmdbd version \S+ started`)
)

// errorTTL is how long an error is reported. While the database is down slurmdbd repeats it with every attempt: after 5
// seconds, or 30 more if the server does not even refuse the connection. When the database is back, slurmdbd logs
// nothing.
const errorTTL = 2 * time.Minute

// maxLine limits how much of a line is parsed.
const maxLine = 2048

// A watch parses a log as it is written.
type watch struct {
	now func() time.Time

	mutex sync.Mutex
	line  []byte // the last line, as far as it was written
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
		code, _ := strconv.Atoi(string(match[1])) // digits only
		w.last, w.since = Report{Code: code, Text: string(match[2])}, w.now()
	} else if started.Match(line) {
		w.last = Report{}
	}
}

// Report returns the last error, unless it is too old.
func (w *watch) Report() Report {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.now().Sub(w.since) > errorTTL {
		return Report{}
	}
	return w.last
}
