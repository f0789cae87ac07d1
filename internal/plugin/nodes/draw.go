package nodes

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
)

// Draw writes the result as a table.
func (r *Result) Draw(page *output.Page, now time.Time) {
	rows := make([][]string, len(r.Nodes))
	for i := range r.Nodes {
		rows[i] = r.Nodes[i].row(page, now)
	}
	heading := []string{"NODE", "STATE", "NODESET", "POD", "KUBERNETES NODE", "CPUS", "MEMORY", "GRES", "JOBS"}
	if page.Wide {
		heading = append(heading, "PARTITIONS", "VERSION", "POD NAME")
	}
	page.Table(append(heading, "REASON"), rows)
	if len(r.Nodes) == 0 {
		page.Line("no nodes")
	}
	page.Notes(r.Notes)
}

func (n *Node) row(page *output.Page, now time.Time) []string {
	state, mark := cmp.Or(n.State, "not registered"), page.Good
	switch {
	case n.Down:
		mark = page.Bad
	case n.Closed || n.State == "":
		mark = page.Warn
	}
	host := n.KubernetesNode
	if n.Cordoned {
		host += page.Warn(" (cordoned)")
	}
	row := []string{n.Name, mark(state), n.NodeSet, n.PodState, host, share(int64(n.AllocatedCPUs), int64(n.CPUs), 1),
		share(n.AllocatedMemory, n.Memory, gibibyte), n.gres(), n.jobs(page.Wide)}
	if page.Wide {
		row = append(row, strings.Join(n.Partitions, ","), n.Version, n.Pod)
	}
	return append(row, n.Because(now))
}

// gibibyte is in MiB.
const gibibyte = 1024

// share returns what is used of a total, such as 2/8; empty if the total is unknown.
func share(used, total, unit int64) string {
	if total == 0 {
		return ""
	}
	if unit == gibibyte {
		return fmt.Sprintf("%d/%dGi", used/unit, total/unit)
	}
	return fmt.Sprintf("%d/%d", used, total)
}

// gres returns the devices: how many are used of how many, by type. The indexes of the used ones are left out.
func (n *Node) gres() string {
	if n.GRES == "" {
		return ""
	}
	used, _, _ := strings.Cut(n.GRESUsed, "(")
	if used == "" {
		return n.GRES
	}
	return used + " of " + n.GRES[strings.LastIndex(n.GRES, ":")+1:]
}

// shownJobs is how many jobs a table names.
const shownJobs = 2

func (n *Node) jobs(all bool) string {
	if all || len(n.Jobs) <= shownJobs {
		return strings.Join(n.Jobs, ",")
	}
	return fmt.Sprintf("%s,+%d", strings.Join(n.Jobs[:shownJobs], ","), len(n.Jobs)-shownJobs)
}

// Because returns why the node is closed to jobs, since when and by whom. The operator's reasons name it.
func (n *Node) Because(now time.Time) string {
	if !n.Closed {
		return ""
	}
	text := cmp.Or(n.Reason, "no reason given")
	var details []string
	if n.Owner == OwnerOthers && n.ReasonBy != "" {
		details = append(details, "by "+n.ReasonBy)
	}
	if n.ReasonAt != nil {
		details = append(details, output.Age(now, *n.ReasonAt)+" ago")
	}
	if len(details) > 0 {
		text += " (" + strings.Join(details, ", ") + ")"
	}
	return text
}
