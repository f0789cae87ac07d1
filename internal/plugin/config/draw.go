package config

import (
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
)

// Draw writes the file with who set each line, as comments: it stays a file that Slurm reads.
func (r *Result) Draw(page *output.Page) {
	title := "# " + r.File + " of the Controller " + r.Controller + ", configuration " + r.Hash
	if r.Source != "" {
		title += ", from " + r.Source
	}
	page.Line("%s", page.Dim(title))
	rows := make([][]string, len(r.Lines))
	width := 0
	for i, line := range r.Lines {
		if size := len(line.Text); size <= maxColumn {
			width = max(width, size)
		}
		rows[i] = []string{line.Text, line.Source}
	}
	for _, row := range rows {
		if row[1] == "" {
			page.Line("%s", row[0])
			continue
		}
		page.Line("%s%s  %s", row[0], strings.Repeat(" ", max(width-len(row[0]), 0)), page.Dim("# "+row[1]))
	}
	if len(r.Files) == 0 {
		return
	}
	page.Line("%s", page.Dim("#\n# Further files, which --file shows:"))
	for _, file := range r.Files {
		page.Line("%s", page.Dim("#   "+file.Name+"  "+file.Source))
	}
}

// maxColumn is the length of lines up to which sources are in one column.
const maxColumn = 60

// Draw writes what differs.
func (d *Difference) Draw(page *output.Page) {
	page.Line("In force    %s", d.InForce)
	switch d.Running {
	case "":
		page.Line("Running     %s", page.Warn("unknown"))
	case d.InForce:
		page.Line("Running     %s, %s", d.Running, page.Good("the same"))
	default:
		page.Line("Running     %s, %s", d.Running, page.Bad("another one"))
	}
	for _, change := range d.Changed {
		page.Line("  %s: %s in force, and slurmctld runs with %s", change.Key, change.InForce, change.Running)
	}
	if d.Condition != "" {
		page.Line("Condition   %s", d.Condition)
	}
	if d.Next == nil {
		page.Line("Next        none")
	} else {
		page.Line("Next        %s", d.Next.Hash)
		drawLines(page, d.Next.Lines)
	}
	if d.Waits != nil {
		d.Waits.Draw(page)
	}
	page.Notes(d.Notes)
}

func drawLines(page *output.Page, lines []string) {
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "- "):
			line = page.Bad(line)
		case strings.HasPrefix(line, "+ "):
			line = page.Good(line)
		}
		page.Line("  %s", line)
	}
}

// Draw writes what a change would do.
func (c *Check) Draw(page *output.Page) {
	for _, problem := range c.Refusals {
		page.Line("%s %s: %s", page.Bad("refused:"), problem.Object, problem.Message)
	}
	for _, problem := range c.Problems {
		page.Line("%s %s: %s", page.Bad("error:"), problem.Object, problem.Message)
	}
	for _, problem := range c.Warnings {
		page.Line("%s %s: %s", page.Warn("warning:"), problem.Object, problem.Message)
	}
	switch {
	case !c.Accepted():
		page.Line("%s", page.Bad("The change would not be applied"))
	case len(c.Lines) == 0:
		page.Line("%s", page.Good("No mistake was found")+"; slurm.conf does not change")
	default:
		page.Line("%s", page.Good("No mistake was found")+"; slurm.conf changes:")
		drawLines(page, c.Lines)
	}
	if c.Waits != nil {
		c.Waits.Draw(page)
	}
	for _, text := range c.Checked {
		page.Line("%s %s", page.Dim("checked:    "), text)
	}
	for _, text := range c.NotChecked {
		page.Line("%s %s", page.Dim("not checked:"), text)
	}
	page.Notes(c.Notes)
}
