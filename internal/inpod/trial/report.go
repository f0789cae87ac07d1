package trial

import (
	"encoding/json"
	"os"
	"strings"
)

// Outcome is how a trial ended.
type Outcome string

// The outcomes of a trial. Only Accepted lets the candidate through.
const (
	// Accepted means that slurmctld runs with the candidate.
	Accepted Outcome = "accepted"
	// Refused means that slurmctld said no; a person has to change the configuration.
	Refused Outcome = "refused"
	// Failed means that the trial could not be held, which says nothing about the candidate.
	Failed Outcome = "failed"
)

// Report is the result of a trial.
type Report struct {
	SlurmVersion string  `json:"slurmVersion,omitempty"`
	Outcome      Outcome `json:"outcome"`
	// Detail says what is wrong with the candidate or the trial.
	Detail string `json:"detail,omitempty"`
}

const (
	// maxDetail is the most that a person wants to read in a condition. Even when JSON escapes every byte of it, the
	// report stays within what Kubernetes keeps of a termination message (4096 bytes) for all that slurmctld prints.
	maxDetail = 1500
	// maxReport is what Kubernetes keeps of a termination message.
	maxReport = 4096
)

// WriteFile writes the report as JSON.
func (r Report) WriteFile(path string) error {
	r.Detail = cut(strings.ToValidUTF8(r.Detail, "?"), maxDetail)
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	// Only control characters take more than two bytes in JSON.
	if len(content) > maxReport {
		r.Detail = cut(r.Detail, maxDetail/6)
		if content, err = json.Marshal(r); err != nil {
			return err
		}
	}
	return os.WriteFile(path, content, 0o644)
}

// cut shortens a text to at most limit bytes, at the end of a character.
func cut(text string, limit int) string {
	const mark = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
