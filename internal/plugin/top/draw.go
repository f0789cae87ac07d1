package top

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
)

// Draw writes the result as text, with at most limit rows of each table; 0 for all.
func (r *Result) Draw(page *output.Page, limit int) {
	r.drawTotals(page)
	switch r.view {
	case Nodes:
		table(page, limit, nodeHeading(page), r.Nodes, func(n *Node) []string { return n.row(page) })
	case Users:
		r.drawShares(page, limit)
	case GPUs:
		r.drawGPUs(page, limit)
	case Overview:
		if len(r.GPUs) > 0 {
			r.drawGPUs(page, limit)
		}
		r.drawShares(page, limit)
	}
	page.Notes(r.Notes)
}

// table writes rows below a free line, and how many are left out.
func table[T any](page *output.Page, limit int, heading []string, rows []T, row func(*T) []string) {
	page.Line("")
	shown := len(rows)
	if limit > 0 {
		shown = min(shown, limit)
	}
	cells := make([][]string, shown)
	for i := range cells {
		cells[i] = row(&rows[i])
	}
	page.Table(heading, cells)
	if left := len(rows) - shown; left > 0 {
		page.Line("%s", page.Dim(fmt.Sprintf("and %d more; --limit=0 shows all", left)))
	}
}

func (r *Result) drawTotals(page *output.Page) {
	line := func(name string, amount Amount, unit int64, suffix string) {
		if amount.Total == 0 {
			return
		}
		text := output.Bar(int(amount.Allocated/unit), int(amount.Total/unit)) + suffix + " allocated"
		if amount.Closed > 0 {
			text += fmt.Sprintf(", %d%s on nodes that take no jobs", amount.Closed/unit, suffix)
		}
		page.Line("%-8s%s", name, text)
	}
	line("CPUs", r.Totals.CPUs, 1, "")
	line("Memory", r.Totals.Memory, gibibyte, "Gi")
	line("GPUs", r.Totals.GPUs, 1, "")
	page.Line("%-8s%d running, %d pending", "Jobs", r.Totals.Running, r.Totals.Pending)
}

// gibibyte is in MiB.
const gibibyte = 1024

func nodeHeading(page *output.Page) []string {
	heading := []string{"NODE", "STATE", "JOBS", "CPUS", "LOAD", "MEMORY", "GPUS", "POD CPUS", "POD MEMORY"}
	if page.Wide {
		heading = append(heading, "FREE MEMORY", "NODESET", "KUBERNETES NODE")
	}
	return heading
}

func (n *Node) row(page *output.Page) []string {
	mark := page.Good
	switch {
	case n.down:
		mark = page.Bad
	case n.closed:
		mark = page.Warn
	}
	row := []string{
		n.Name, mark(cmp.Or(n.State, "not registered")), count(n.Jobs), n.CPUs.text(1, ""), decimal(n.Load),
		n.Memory.text(gibibyte, "Gi"), n.GPUs.text(1, ""), decimal(n.PodCPUs), size(n.PodMemory),
	}
	if page.Wide {
		row = append(row, size(n.FreeMemory), n.NodeSet, n.KubernetesNode)
	}
	return row
}

// text returns an amount such as 16/64 25%.
func (a *Amount) text(unit int64, suffix string) string {
	if a.Total == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d%s %.0f%%", a.Allocated/unit, a.Total/unit, suffix, 100*a.share())
}

func (r *Result) drawShares(page *output.Page, limit int) {
	for _, shares := range []struct {
		name string
		rows []Share
	}{{"USER", r.Users}, {"ACCOUNT", r.Accounts}} {
		if len(shares.rows) == 0 {
			continue
		}
		heading := []string{
			shares.name, "RUNNING", "CPUS", "MEMORY", "GPUS", "PENDING", "PENDING CPUS", "PENDING GPUS",
		}
		table(page, limit, heading, shares.rows, (*Share).row)
	}
}

func (s *Share) row() []string {
	row := []string{s.Name, "", "", "", "", "", "", ""}
	if s.Running > 0 {
		copy(row[1:], []string{count(s.Running), number(s.CPUs), mebibytes(s.Memory), number(s.GPUs)})
	}
	if s.Pending > 0 {
		copy(row[5:], []string{count(s.Pending), number(s.PendingCPUs), number(s.PendingGPUs)})
	}
	return row
}

func (r *Result) drawGPUs(page *output.Page, limit int) {
	if len(r.GPUs) == 0 {
		page.Line("no GPUs")
		return
	}
	heading := []string{"GPU", "ALLOCATED", "FREE", "CLOSED", "NODES"}
	table(page, limit, heading, r.GPUs, func(each *GPUType) []string {
		return []string{
			cmp.Or(each.Type, "gpu"), each.text(1, ""), strconv.FormatInt(each.Total-each.Allocated-each.Closed, 10),
			number(each.Closed), count(each.Nodes),
		}
	})
}

// count and number return a number, and nothing for zero.
func count(n int) string { return number(int64(n)) }

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func decimal(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n, 'f', 1, 64)
}

func size(n *int64) string {
	if n == nil {
		return ""
	}
	return cmp.Or(mebibytes(*n), "0")
}

// mebibytes returns a size in MiB in a suitable unit.
func mebibytes(n int64) string {
	switch {
	case n == 0:
		return ""
	case n < gibibyte:
		return strconv.FormatInt(n, 10) + "Mi"
	case n < 10*gibibyte && n%gibibyte != 0:
		return strconv.FormatFloat(float64(n)/gibibyte, 'f', 1, 64) + "Gi"
	default:
		return strconv.FormatInt(n/gibibyte, 10) + "Gi"
	}
}
