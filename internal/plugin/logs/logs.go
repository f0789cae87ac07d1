// Package logs merges the logs of a cluster's daemons by time.
//
// Kubernetes adds the time to each line on request, as the kubelet saw it. Daemons on hosts whose clocks differ are
// merged with that difference.
package logs

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Source is a container whose log is read.
type Source struct {
	Pod, Container string
	// SlurmNode is the Slurm node of a slurmd, empty for other daemons.
	SlurmNode string
}

// String returns the name of the source in the output.
func (s Source) String() string {
	if s.SlurmNode != "" && s.Container == "slurmd" {
		return s.Pod
	}
	return s.Pod + "/" + s.Container
}

// A Line is a line of a log.
type Line struct {
	Time   time.Time
	Source Source
	Text   string
}

// String returns the line with its time and source.
func (l *Line) String() string {
	return fmt.Sprintf("%s  %s  %s", l.Time.UTC().Format("2006-01-02T15:04:05.000Z"), l.Source, l.Text)
}

// maxLine is the length at which the kubelet splits lines, with room for the time.
const maxLine = 64 << 10

// Scan calls yield for each line of a log with times, until it returns false. A line without a time gets that of the
// line before it.
func Scan(source Source, log io.Reader, yield func(Line) bool) error {
	lines := bufio.NewScanner(log)
	lines.Buffer(make([]byte, 0, 4<<10), maxLine)
	var last time.Time
	for lines.Scan() {
		text := lines.Text()
		if stamp, rest, found := strings.Cut(text, " "); found {
			if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
				last, text = at, rest
			}
		}
		if !yield(Line{last, source, text}) {
			return nil
		}
	}
	return lines.Err()
}

// Merge sorts lines of several logs by time. Lines of one log keep their order.
func Merge(logs ...[]Line) []Line {
	merged := slices.Concat(logs...)
	slices.SortStableFunc(merged, func(a, b Line) int { return a.Time.Compare(b.Time) })
	return merged
}

// A Filter selects lines.
type Filter struct {
	node string
	// mentionsNode and mentionsJob are nil to select all.
	mentionsNode, mentionsJob *regexp.Regexp
}

// NewFilter returns a filter for a Slurm node and a job; either is empty for all.
func NewFilter(node, job string) Filter {
	filter := Filter{node: node}
	if node != "" {
		filter.mentionsNode = regexp.MustCompile(`(^|[^\w.-])` + regexp.QuoteMeta(node) + `($|[^\w-])`)
	}
	if job != "" {
		// JobId=7, job 7, StepId=7.0, [7.batch], and array tasks such as 7_3, but not other numbers.
		id := regexp.QuoteMeta(job)
		filter.mentionsJob = regexp.MustCompile(`(?i)(\bjob(_?id)?|\bstep(_?id)?)[ =:#]*\(?` + id + `\b|\[` + id + `[.\]_]`)
	}
	return filter
}

// Keep reports whether a line is selected. All lines of the node's own slurmd concern the node.
func (f Filter) Keep(line *Line) bool {
	if f.mentionsNode != nil && line.Source.SlurmNode != f.node && !f.mentionsNode.MatchString(line.Text) {
		return false
	}
	return f.mentionsJob == nil || f.mentionsJob.MatchString(line.Text)
}
