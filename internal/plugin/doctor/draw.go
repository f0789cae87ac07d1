package doctor

import (
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
)

// Draw writes the findings as text, the most urgent first.
func (r *Result) Draw(page *output.Page) {
	marks := map[Severity]func(string) string{Error: page.Bad, Warning: page.Warn, Notice: page.Dim}
	for i := range r.Findings {
		finding := &r.Findings[i]
		object := finding.Object
		if finding.Namespace != "" {
			object = finding.Namespace + " " + object
		}
		page.Line("%s  %s  %s", marks[finding.Severity](strings.ToUpper(string(finding.Severity))),
			page.Bold(finding.Check), object)
		page.Line("    %s", finding.Problem)
		page.Line("    %s %s", page.Dim("effect:"), finding.Effect)
		if finding.Advice != "" {
			page.Line("    %s %s", page.Dim("advice:"), finding.Advice)
		}
		if finding.Fix != "" {
			page.Line("    %s %s", page.Dim("run:   "), finding.Fix)
		}
		page.Line("    %s %s\n", page.Dim("see:   "), finding.Docs)
	}
	page.Line("%s", r.summary(page))
	page.Notes(r.Notes)
}

func (r *Result) summary(page *output.Page) string {
	counts := map[Severity]int{}
	for i := range r.Findings {
		counts[r.Findings[i].Severity]++
	}
	examined := strings.Join(r.Clusters, ", ")
	if counts[Error]+counts[Warning] == 0 {
		return page.Good("Nothing is wrong") + " with " + examined
	}
	return output.Plural(counts[Error], "error") + ", " + output.Plural(counts[Warning], "warning") + " with " + examined
}
