package why

import (
	"cmp"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
)

// Draw writes the explanation as text.
func (n *Node) Draw(page *output.Page) {
	page.Line("%s", page.Bold(n.Verdict))
	page.Line("")
	var facts [][]string
	fact := func(name, value string) {
		if value != "" {
			facts = append(facts, []string{page.Dim(name), value})
		}
	}
	fact("Slurm node", n.Name+", "+cmp.Or(n.State, "not registered"))
	fact("NodeSet", n.NodeSet)
	if n.Pod != "" {
		fact("Pod", n.Pod+", "+n.PodState)
	}
	host := n.KubernetesNode
	if n.Cordoned {
		host += ", cordoned"
	}
	fact("Kubernetes node", host)
	fact("Jobs", strings.Join(n.Jobs, ", "))
	page.Table(nil, facts)
	drawFindings(page, "What keeps jobs from it", n.Closing)
	drawFindings(page, "Its pod is to be deleted because", n.Leaving)
	drawFindings(page, "Its pod is kept because", n.Holding)
	if len(n.Reports) > 0 {
		page.Line("")
		page.Line("The operator reports")
		for _, report := range n.Reports {
			page.Line("  - %s", report)
		}
	}
	page.Notes(n.Notes)
}

func drawFindings(page *output.Page, title string, findings []Finding) {
	if len(findings) == 0 {
		return
	}
	page.Line("")
	page.Line("%s", title)
	for _, finding := range findings {
		page.Line("  - %s", finding.What)
		if finding.Remedy != "" {
			page.Line("    %s", page.Dim(finding.Remedy))
		}
	}
}
