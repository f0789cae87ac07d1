package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
)

// Draw writes the result as text.
func (r *Result) Draw(page *output.Page, now time.Time) {
	for i := range r.Clusters {
		if i > 0 {
			page.Line("")
		}
		r.Clusters[i].draw(page, now)
	}
	page.Notes(r.Notes)
}

func (c *Cluster) draw(page *output.Page, now time.Time) {
	var facts [][]string
	fact := func(name, value string) {
		if value != "" {
			facts = append(facts, []string{page.Dim(name), value})
		}
	}
	fact("Cluster", page.Bold(c.Namespace+"/"+c.Name)+"  "+c.verdict(page))
	fact("Slurm", c.versions())
	fact("Active", c.slurmctlds())
	fact("Configuration", c.configuration(page, now))
	if c.Nodes != nil {
		fact("Nodes", counts(page, c.Nodes, true))
	}
	if c.Jobs != nil {
		fact("Jobs", fmt.Sprintf("%d running, %d pending", c.Jobs.Running, c.Jobs.Pending))
	}
	page.Table(nil, facts)
	page.Line("")

	drawer := &drawer{page: page, now: now}
	drawer.add("", "", &c.Component)
	groups := grouped(c.Components, page.Wide)
	for i := range groups {
		own, below := output.Tree("", i, len(groups))
		drawer.add(own, below, &groups[i])
	}
	page.Table([]string{"NAME", "PODS", "STATE", "SINCE", "SLURM NODES"}, drawer.rows)
	c.drawTokens(page, now)
}

// verdict returns the state of the Controller, and how many other objects are not ready.
func (c *Cluster) verdict(page *output.Page) string {
	parts := []string{mark(page, c.State, string(c.State))}
	for _, state := range []State{Degraded, Progressing, Deleting, Unknown} {
		count := 0
		for i := range c.Components {
			if c.Components[i].State == state {
				count++
			}
		}
		if count > 0 {
			parts = append(parts, mark(page, state, fmt.Sprintf("%d of %d objects %s", count, len(c.Components), state)))
		}
	}
	return strings.Join(parts, ", ")
}

func (c *Cluster) versions() string {
	var parts []string
	if c.SlurmVersion != "" {
		parts = append(parts, c.SlurmVersion)
	}
	if c.APIVersion != "" {
		parts = append(parts, "API "+c.APIVersion)
	}
	if c.SlurmName != "" {
		parts = append(parts, "ClusterName "+c.SlurmName)
	}
	return strings.Join(parts, ", ")
}

func (c *Cluster) slurmctlds() string {
	if len(c.Standby) == 0 {
		return c.Active
	}
	return cmp.Or(c.Active, "none") + "; standby: " + strings.Join(c.Standby, ", ")
}

func (c *Cluster) configuration(page *output.Page, now time.Time) string {
	if c.Configuration == nil {
		return ""
	}
	since := output.Age(now, c.Configuration.Since.Time)
	hash := cmp.Or(c.Configuration.Hash, "none")
	if c.Configuration.Applied {
		return fmt.Sprintf("%s, applied, for %s", hash, since)
	}
	return fmt.Sprintf("%s; %s", hash, page.Warn("the latest one is not applied, for "+since))
}

func (c *Cluster) drawTokens(page *output.Page, now time.Time) {
	if len(c.Tokens) == 0 {
		return
	}
	page.Line("")
	var rows [][]string
	for _, token := range c.Tokens {
		expiry := "not issued"
		if token.ExpiresAt != nil {
			expiry = "in " + duration.HumanDuration(token.ExpiresAt.Sub(now))
			if !now.Before(token.ExpiresAt.Time) {
				expiry = output.Age(now, token.ExpiresAt.Time) + " ago"
			}
		}
		renewal := "no"
		if token.Renewed {
			renewal = "yes"
		}
		state := mark(page, token.State, string(token.State))
		rows = append(rows, []string{token.Name, token.Username, state, expiry, renewal})
	}
	page.Table([]string{"TOKEN", "USER", "STATE", "EXPIRES", "RENEWED"}, rows)
}

// counts describes Slurm nodes by state; states without nodes are left out.
func counts(page *output.Page, nodes *slinkyv1beta1.NodeCounts, total bool) string {
	var parts []string
	part := func(count int32, state string, mark func(string) string) {
		if count > 0 {
			parts = append(parts, mark(fmt.Sprintf("%d %s", count, state)))
		}
	}
	plain := func(text string) string { return text }
	part(nodes.Allocated, "allocated", plain)
	part(nodes.Idle, "idle", plain)
	part(nodes.Drain, "drained", page.Warn)
	part(nodes.Down, "down", page.Bad)
	text := strings.Join(parts, ", ")
	if total {
		text = strings.TrimSuffix(fmt.Sprintf("%d: %s", nodes.Total, text), ": ")
	}
	return text
}

// mark marks a text as the state asks for.
func mark(page *output.Page, state State, text string) string {
	switch state {
	case Ready:
		return page.Good(text)
	case Degraded, NotFound:
		return page.Bad(text)
	case Progressing, Deleting, Unknown:
	}
	return page.Warn(text)
}

// A drawer collects the rows of the tree.
type drawer struct {
	page *output.Page
	now  time.Time
	rows [][]string
}

// add adds the row of a component, and below it what is wrong or in progress.
func (d *drawer) add(own, below string, c *Component) {
	since := ""
	if c.Since != nil {
		since = output.Age(d.now, c.Since.Time)
	}
	state := string(c.State)
	if c.State != Ready && c.Reason != "" {
		state += " (" + c.Reason + ")"
	}
	nodes := ""
	if c.Slurm != nil {
		nodes = counts(d.page, c.Slurm, false)
	}
	d.rows = append(d.rows, []string{own + c.Kind + "/" + c.Name, c.Pods, mark(d.page, c.State, state), since, nodes})
	free := func(text string) { d.rows = append(d.rows, []string{below + "   " + text}) }
	if c.State != Ready && c.Message != "" {
		free(c.Message)
	}
	for _, problem := range c.Problems {
		free(d.page.Warn(problem.Condition+" ("+problem.Reason+")") + ": " + problem.Message)
	}
	for _, progress := range c.Progress {
		text := progress.What + " " + output.Bar(progress.Done, progress.Total)
		if progress.Left > 0 {
			text += ", about " + duration.HumanDuration(time.Duration(progress.Left)*time.Second) + " left"
		}
		free(text)
	}
}

// manyEquals is how many components of a kind may be listed one by one although there is nothing to say about them.
const manyEquals = 3

// grouped replaces the components of a kind that are ready, if they are many, by one that stands for them all.
func grouped(components []Component, all bool) []Component {
	equals := map[string][]Component{}
	for _, c := range components {
		if c.quiet() {
			equals[c.Kind] = append(equals[c.Kind], c)
		}
	}
	var result []Component
	done := map[string]bool{}
	for _, c := range components {
		switch {
		case all || !c.quiet() || len(equals[c.Kind]) <= manyEquals:
			result = append(result, c)
		case !done[c.Kind]:
			done[c.Kind] = true
			result = append(result, merge(equals[c.Kind]))
		}
	}
	return result
}

// quiet reports whether there is nothing to say about a component.
func (c *Component) quiet() bool { return c.State == Ready && len(c.Problems)+len(c.Progress) == 0 }

// merge returns a component that stands for several that are ready.
func merge(equals []Component) Component {
	slices.SortFunc(equals, func(a, b Component) int { return cmp.Compare(a.Name, b.Name) })
	first, last := equals[0], equals[len(equals)-1]
	merged := Component{
		Kind: first.Kind + "s", Namespace: first.Namespace,
		Name: fmt.Sprintf("%s … %s (%d)", first.Name, last.Name, len(equals)), State: Ready,
	}
	ready, desired := 0, 0
	for _, c := range equals {
		if c.Since != nil && (merged.Since == nil || c.Since.After(merged.Since.Time)) {
			merged.Since = c.Since
		}
		var is, should int
		if n, _ := fmt.Sscanf(c.Pods, "%d/%d", &is, &should); n == 2 {
			ready, desired = ready+is, desired+should
		}
		if c.Slurm != nil {
			if merged.Slurm == nil {
				merged.Slurm = &slinkyv1beta1.NodeCounts{}
			}
			merged.Slurm.Idle += c.Slurm.Idle
			merged.Slurm.Allocated += c.Slurm.Allocated
			merged.Slurm.Down += c.Slurm.Down
			merged.Slurm.Drain += c.Slurm.Drain
			merged.Slurm.Total += c.Slurm.Total
		}
	}
	merged.Pods = fmt.Sprintf("%d/%d", ready, desired)
	return merged
}
