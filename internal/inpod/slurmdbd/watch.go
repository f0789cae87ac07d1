package slurmdbd

import (
	"bytes"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// What slurmdbd logs while it starts. The messages are the same in all supported releases. All but the error are logged
// at the level info, which is the default of DebugLevel.
var (
	// failed is a database error. slurmdbd has no connection, so it converts nothing.
	failed = regexp.MustCompile(`mysql_real_connect failed: (\d+) (.*)`)
	// connected follows the first connection. slurmdbd then compares its tables with those of the database.
	connected = regexp.MustCompile(`MySQL server version is: `)
	// step is a step of a conversion: of the data of a table, or of its columns and keys. The conversion is not over when
	// it is done: what has been converted is committed after that.
	step = regexp.MustCompile(`((?:pre|post)-converting .+|Setting cluster id '\d+' on cluster .+|` +
		`(?:adding|dropping) .+ (?:after .+ in|at the beginning of|to|from) table .+|Updating table .+\.\.\.|` +
		`Conversion done: success!)$`)
	// started follows when slurmdbd has converted its database, and serves clients.
	started = regexp.MustCompile(`slurmdbd version (\S+) started`)
)

const (
	// errorTTL is how long an error is reported. While the database is down slurmdbd repeats it with every attempt: after
	// 5 seconds, or 30 more if the server does not even refuse the connection. When the database is back, slurmdbd logs
	// nothing at a low log level.
	errorTTL = 2 * time.Minute
	// attemptTTL is how long after an error slurmdbd counts as waiting for its database: until its next attempt has
	// failed. If it succeeds, that is in the log.
	attemptTTL = 40 * time.Second
)

// maxLine limits how much of a line is parsed.
const maxLine = 2048

// A watch parses a log as it is written.
type watch struct {
	now func() time.Time

	mutex sync.Mutex
	// hasStarted reports whether slurmdbd has started, even if its log does not say so; nil before it runs.
	hasStarted func() bool

	line  []byte // the last line, as far as it was written
	last  Report
	since time.Time // of the last error
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
		w.last.Code, _ = strconv.Atoi(string(match[1])) // digits only
		w.last.Text, w.since = string(match[2]), w.now()
		if w.last.Phase != Started {
			w.enter(Waiting)
		}
		return
	}
	if match := started.FindSubmatch(line); match != nil {
		w.last.Release = string(match[1])
		w.clearError()
		w.enter(Started)
		return
	}
	if w.last.Phase == Started {
		return // tables of a new cluster are not converted
	}
	if match := step.FindSubmatch(line); match != nil {
		w.clearError()
		if w.last.Phase != Converting {
			w.enter(Converting)
			w.last.Since = w.now()
		}
		w.last.Step = string(match[1])
	} else if connected.Match(line) {
		w.clearError()
		w.enter(Starting)
	}
}

func (w *watch) enter(phase Phase) {
	w.last.Phase = phase
	if phase != Converting {
		w.last.Since, w.last.Step = time.Time{}, ""
	}
}

func (w *watch) clearError() { w.last.Code, w.last.Text = 0, "" }

// runs tells the watch which process runs, and its release as far as it is known before it is in the log.
func (w *watch) runs(process int, release string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.hasStarted = func() bool { return handlesTermination(process) }
	if w.last.Release == "" {
		w.last.Release = release
	}
}

// Report returns what is known: the last error, unless it is too old, and what slurmdbd does.
func (w *watch) Report() Report {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.last.Phase != Started && w.hasStarted != nil && w.hasStarted() {
		w.enter(Started)
	}
	report, age := w.last, w.now().Sub(w.since)
	if age > errorTTL {
		report.Code, report.Text = 0, ""
	}
	if report.Phase == "" || report.Phase == Waiting && age > attemptTTL {
		report.Phase = Starting
	}
	return report
}
