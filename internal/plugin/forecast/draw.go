package forecast

import (
	"fmt"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/plugin/config"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
)

// A Result is the answer of the command.
type Result struct {
	Controller string `json:"controller"`
	// Waits are the changes of slurm.conf and of slurmctld's pod that would cost jobs; nil if there are none.
	Waits    *config.Waits `json:"waits,omitempty"`
	NodeSets []NodeSet     `json:"nodeSets"`
	Notes    []string      `json:"notes,omitempty"`
}

// Draw writes the forecasts.
func (r *Result) Draw(page *output.Page) {
	switch title := page.Bold("Controller " + r.Controller); {
	case r.Waits != nil:
		page.Line("%s:", title)
		r.Waits.Draw(page)
	case len(r.NodeSets) == 0:
		page.Line("%s: %s", title, page.Good("no change waits for jobs"))
	}
	for i := range r.NodeSets {
		if i > 0 || r.Waits != nil {
			page.Line("")
		}
		r.NodeSets[i].draw(page)
	}
	page.Notes(r.Notes)
}

func (s *NodeSet) draw(page *output.Page) {
	title := "NodeSet " + s.Name
	if s.Changed {
		title += ", as changed"
	}
	page.Line("%s: %d desired, %d available, %d of the current revision", page.Bold(title), s.Desired, s.Available,
		s.Updated)
	if len(s.Steps)+len(s.Waits) == 0 && s.Stopped == "" && s.Withheld == "" {
		page.Line("  %s", page.Good("nothing to do"))
		return
	}
	for _, step := range s.Steps {
		page.Line("  %s %s: %s", page.Good(step.Action), step.Nodes, step.Why)
	}
	for _, wait := range s.Waits {
		page.Line("  %s %s (%s): %s", page.Warn("wait for"), wait.Pods, wait.Cause, wait.Why)
	}
	if s.Stopped != "" {
		page.Line("  %s: %s", page.Bad("the update is stopped"), s.Stopped)
	}
	if s.Withheld != "" {
		page.Line("  %s: %s", page.Bad("no pod is created"), s.Withheld)
	}
	if s.Outdated > 0 {
		page.Line("  %s", s.rounds())
	}
	if s.JobsUntil != nil {
		page.Line("  the jobs that it waits for end at %s at the latest", s.JobsUntil.UTC().Format("2006-01-02 15:04 MST"))
	}
}

// rounds says how many pods an update has yet to replace, and in how many rounds at least.
func (s *NodeSet) rounds() string {
	atOnce := max(s.AtOnce, 1)
	return fmt.Sprintf("the update replaces %s, at most %d at a time: at least %s", output.Plural(s.Outdated, "pod"),
		atOnce, output.Plural((s.Outdated+atOnce-1)/atOnce, "round"))
}

// Since returns when a slurmctld whose start is unknown has started for sure: long ago. A recent start would make the
// planner wait for slurmds to register again.
func Since(now time.Time) time.Time { return now.Add(-24 * time.Hour) }
