package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
)

// Orders by what rows are sorted. All but the name are with the largest first, and equals by name.
const (
	byName    = "name"
	byCPU     = "cpu"
	byMemory  = "memory"
	byGPU     = "gpu"
	byLoad    = "load"
	byRunning = "running"
	byPending = "pending"
)

var nodeOrders = map[string]func(*Node) float64{
	byName: nil, byCPU: func(n *Node) float64 { return n.CPUs.share() },
	byMemory: func(n *Node) float64 { return n.Memory.share() }, byGPU: func(n *Node) float64 { return n.GPUs.share() },
	byLoad:    func(n *Node) float64 { return known(n.Load) },
	byRunning: func(n *Node) float64 { return float64(n.Jobs) },
}

var shareOrders = map[string]func(*Share) float64{
	byName: nil, byCPU: func(s *Share) float64 { return float64(s.CPUs) },
	byMemory:  func(s *Share) float64 { return float64(s.Memory) },
	byGPU:     func(s *Share) float64 { return float64(s.GPUs) },
	byRunning: func(s *Share) float64 { return float64(s.Running) },
	byPending: func(s *Share) float64 { return float64(s.Pending) },
}

var gpuOrders = map[string]func(*GPUType) float64{
	byName: nil, byGPU: func(g *GPUType) float64 { return float64(g.Allocated) },
}

// known returns a number, and one below all others if it is not known.
func known(number *float64) float64 {
	if number == nil {
		return -1
	}
	return *number
}

// Orders returns the values of --sort-by for a view.
func Orders(view View) []string {
	var names []string
	switch view {
	case Nodes:
		names = slices.Collect(maps.Keys(nodeOrders))
	case GPUs:
		names = slices.Collect(maps.Keys(gpuOrders))
	case Overview, Users:
		names = slices.Collect(maps.Keys(shareOrders))
	}
	slices.Sort(names)
	return names
}

// DefaultOrder returns the order of a view without --sort-by.
func DefaultOrder(view View) string {
	if view == GPUs {
		return byName
	}
	return byCPU
}

// CheckOrder returns an error for an order that a view does not have.
func CheckOrder(view View, order string) error {
	if orders := Orders(view); !slices.Contains(orders, order) {
		return fmt.Errorf("unknown order %q; use --sort-by=%s", order, strings.Join(orders, ", "))
	}
	return nil
}

// Sort sorts the rows by an order of the view.
func (r *Result) Sort(order string) {
	sortRows(r.Nodes, nodeOrders[order], func(n *Node) string { return n.Name })
	sortRows(r.Users, shareOrders[order], func(s *Share) string { return s.Name })
	sortRows(r.Accounts, shareOrders[order], func(s *Share) string { return s.Name })
	sortRows(r.GPUs, gpuOrders[order], func(g *GPUType) string { return g.Type })
}

func sortRows[T any](rows []T, value func(*T) float64, name func(*T) string) {
	slices.SortFunc(rows, func(a, b T) int {
		order := 0
		if value != nil {
			order = cmp.Compare(value(&b), value(&a))
		}
		return cmp.Or(order, nodes.CompareNames(name(&a), name(&b)))
	})
}
