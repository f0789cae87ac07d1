package validation

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmuser"
)

// Outcome is the result of a validation run.
type Outcome string

// The outcomes. Only Accepted lets the candidate pass.
const (
	// Accepted means that slurmctld runs with the candidate.
	Accepted Outcome = "accepted"
	// Refused means that slurmctld refuses it; a user has to change the configuration.
	Refused Outcome = "refused"
	// Failed means that the validation run could not be completed, which says nothing about the candidate.
	Failed Outcome = "failed"
)

// Report is the result of a validation run, with details.
type Report struct {
	SlurmVersion string `json:"slurmVersion,omitempty"`
	// SlurmUser is the user slurm of the image.
	SlurmUser *slurmuser.User `json:"slurmUser,omitempty"`
	Outcome   Outcome         `json:"outcome"`
	// Detail says what is wrong with the candidate or the validation run.
	Detail string `json:"detail,omitempty"`
	// LeftOut are the NodeSets without whose changes the candidate was accepted. All others are included.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
	// AllLeftOut reports that it was accepted without the changes of any NodeSet; LeftOut are the known faulty ones.
	AllLeftOut bool `json:"allLeftOut,omitempty"`
}

// LeftOut is a NodeSet whose changes slurmctld refuses.
type LeftOut struct {
	NodeSet string `json:"nodeSet"`
	// Detail says what is wrong with them.
	Detail string `json:"detail,omitempty"`
}

const (
	// maxDetail is the longest detail that is still readable in a condition.
	maxDetail = 1500
	// maxReport is Kubernetes' limit of a termination message.
	maxReport = 4096
)

// WriteFile writes the report as JSON. Details are truncated to Kubernetes' limit; names never are.
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

// cut shortens a text to at most limit bytes, at a character boundary.
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
