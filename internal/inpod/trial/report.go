package trial

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
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
	// LeftOut are the NodeSets without whose changes the candidate was accepted. Those that are not named are in.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
	// AllLeftOut says that it was accepted without the changes of any NodeSet; LeftOut are those that are known to be faulty.
	AllLeftOut bool `json:"allLeftOut,omitempty"`
}

// LeftOut is a NodeSet whose changes slurmctld refuses.
type LeftOut struct {
	NodeSet string `json:"nodeSet"`
	// Detail says what is wrong with them.
	Detail string `json:"detail,omitempty"`
}

const (
	// maxDetail is the most that a person wants to read in a condition.
	maxDetail = 1500
	// maxReport is what Kubernetes keeps of a termination message.
	maxReport = 4096
)

// WriteFile writes the report as JSON. Details are cut to what Kubernetes keeps; names never are.
func (r Report) WriteFile(path string) error {
	r.LeftOut = slices.Clone(r.LeftOut)
	for limit := maxDetail; ; limit /= 2 {
		r.Detail = cut(strings.ToValidUTF8(r.Detail, "?"), limit)
		for i := range r.LeftOut {
			r.LeftOut[i].Detail = cut(strings.ToValidUTF8(r.LeftOut[i].Detail, "?"), limit)
		}
		content, err := json.Marshal(r)
		switch {
		case err != nil:
			return err
		case len(content) <= maxReport:
			return os.WriteFile(path, content, 0o644)
		case limit == 0:
			return fmt.Errorf("the report has %d bytes, and Kubernetes keeps %d", len(content), maxReport)
		}
	}
}

// cut shortens a text to at most limit bytes, at the end of a character.
func cut(text string, limit int) string {
	const mark = "…"
	if len(text) <= limit {
		return text
	}
	if limit < len(mark) {
		return ""
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
