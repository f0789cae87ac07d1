package scale

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// CreationReport compares the creation of NodeSets and StatefulSets of the same pods.
type CreationReport struct {
	Kubernetes string          `json:"kubernetes"`
	Cores      int             `json:"cores"`
	Nodes      int             `json:"nodes"`
	Rounds     []CreationRound `json:"rounds"`
}

// CreationRound is one comparison.
type CreationRound struct {
	StatefulSet Result `json:"statefulSet"`
	NodeSet     Result `json:"nodeSet"`
}

// Markdown returns the medians of all rounds with the same number of pods as a table, and those of their ratios.
func (r CreationReport) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Kubernetes %s, %d cores, %d simulated nodes. Times in seconds: the median of all rounds, the shortest "+
		"and the longest.\n\n", r.Kubernetes, r.Cores, r.Nodes)
	b.WriteString("| Workload | Pods | Rounds | Created | Ready | Settled | Scaled to 0 |\n|---|--:|--:|--:|--:|--:|--:|\n")
	bySize := map[int][]CreationRound{}
	for _, round := range r.Rounds {
		bySize[round.NodeSet.Pods] = append(bySize[round.NodeSet.Pods], round)
	}
	for _, pods := range slices.Sorted(maps.Keys(bySize)) {
		row := func(name string, decimals int, valueOf func(CreationRound, func(Result) float64) float64) {
			fmt.Fprintf(&b, "| %s | %d | %d |", name, pods, len(bySize[pods]))
			for _, time := range []func(Result) float64{
				func(r Result) float64 { return r.Created }, func(r Result) float64 { return r.Ready },
				func(r Result) float64 { return r.Settled }, func(r Result) float64 { return r.Gone },
			} {
				var values []float64
				for _, round := range bySize[pods] {
					values = append(values, valueOf(round, time))
				}
				fmt.Fprintf(&b, " %.*f (%.*f to %.*f) |", decimals, percentile(values, 50), decimals, slices.Min(values),
					decimals, slices.Max(values))
			}
			b.WriteString("\n")
		}
		row("StatefulSet", 1, func(r CreationRound, time func(Result) float64) float64 { return time(r.StatefulSet) })
		row("NodeSet", 1, func(r CreationRound, time func(Result) float64) float64 { return time(r.NodeSet) })
		row("ratio", 2, func(r CreationRound, time func(Result) float64) float64 {
			return time(r.NodeSet) / time(r.StatefulSet)
		})
	}
	return b.String()
}
