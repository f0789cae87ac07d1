package validation

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A model of slurmctld refuses faulty changes, a pair of conflicting changes, and possibly everything.
type model struct {
	changes    []string
	faulty     map[string]bool
	clash      [2]string // cannot be included together
	baseFaulty bool      // the part that is not from NodeSets is faulty
	runs       int
	last       []string // changes left out of the last accepted variant
}

func (m *model) run(leftOut []string) Report {
	m.runs++
	in := func(name string) bool { return !slices.Contains(leftOut, name) }
	for _, name := range m.changes {
		if m.faulty[name] && in(name) {
			return Report{Outcome: Refused, Detail: name}
		}
	}
	if m.baseFaulty || m.clash[0] != "" && in(m.clash[0]) && in(m.clash[1]) {
		return Report{Outcome: Refused, Detail: "clash"}
	}
	m.last = leftOut
	return Report{Outcome: Accepted}
}

func TestSearchLeavesOutFaultyChangesOnly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		m := &model{faulty: map[string]bool{}}
		for i := range random.IntN(60) {
			m.changes = append(m.changes, fmt.Sprint("set-", i))
		}
		for range random.IntN(5) {
			if len(m.changes) > 0 {
				m.faulty[m.changes[random.IntN(len(m.changes))]] = true
			}
		}
		m.baseFaulty = random.IntN(10) == 0
		report := search(m.changes, m.run)
		switch {
		case m.runs > maxRuns:
			t.Fatalf("%d runs", m.runs)
		case m.baseFaulty && report.Outcome != Refused:
			t.Fatalf("%d changes: the base is faulty, but the report is %+v", len(m.changes), report)
		case m.baseFaulty:
			continue
		case report.Outcome != Accepted || report.AllLeftOut || len(report.LeftOut) != len(m.faulty):
			t.Fatalf("%v of %d changes are faulty, but the report is %+v after %d runs", m.faulty, len(m.changes),
				report, m.runs)
		case len(m.faulty) == 0 && m.runs != 1:
			t.Fatalf("%d runs without a fault", m.runs)
		}
		var names []string
		for _, each := range report.LeftOut {
			if names = append(names, each.NodeSet); each.Detail != each.NodeSet {
				t.Errorf("%s is left out for %q", each.NodeSet, each.Detail)
			}
		}
		if slices.Sort(names); !slices.Equal(names, slices.Sorted(slices.Values(m.last))) {
			t.Fatalf("%v are reported as left out, but %v were left out of the accepted variant", names, m.last)
		}
	}
}

func TestSearchFailsWhenARunFails(t *testing.T) {
	m := &model{changes: []string{"a", "b", "c", "d"}, clash: [2]string{"b", "d"}}
	if report := search(m.changes, m.run); len(report.LeftOut) != 1 || report.LeftOut[0].NodeSet != "d" ||
		!slices.Equal(m.last, []string{"d"}) {
		t.Errorf("with a conflict: %+v", report)
	}
	for count := range 3 {
		m := &model{changes: []string{"a", "b"}, faulty: map[string]bool{"a": true}}
		report := search(m.changes, func(leftOut []string) Report {
			if m.runs == count {
				return Report{Outcome: Failed, Detail: "no room"}
			}
			return m.run(leftOut)
		})
		if report.Outcome != Failed {
			t.Errorf("run %d failed, but the report is %+v", count, report)
		}
	}
}

func TestSearchIsBounded(t *testing.T) {
	m := &model{faulty: map[string]bool{}}
	for i := range 1000 {
		name := fmt.Sprintf("%s-%d", strings.Repeat("n", 59), i)
		m.changes, m.faulty[name] = append(m.changes, name), true
	}
	report := search(m.changes, m.run)
	if m.runs > maxRuns || report.Outcome != Accepted || !report.AllLeftOut || len(report.LeftOut) == 0 ||
		len(m.last) != 1000 {
		t.Errorf("%d runs, without %d: %+v", m.runs, len(m.last), report)
	}
	for i := range report.LeftOut {
		report.LeftOut[i].Detail = strings.Repeat("\x01", maxDetail)
	}
	file := filepath.Join(t.TempDir(), "report")
	if err := report.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(file); err != nil || len(content) > maxReport {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}
