package trial

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A model of slurmctld: it refuses faulty changes, some pairs of changes, and possibly all of it.
type model struct {
	changes []string
	faulty  map[string]bool
	clash   [2]string // may not be in together
	rotten  bool      // what is not of a NodeSet
	runs    int
	last    []string // what was left out of the last variant that was accepted
}

func (m *model) run(leftOut []string) Report {
	m.runs++
	in := func(name string) bool { return !slices.Contains(leftOut, name) }
	for _, name := range m.changes {
		if m.faulty[name] && in(name) {
			return Report{Outcome: Refused, Detail: name}
		}
	}
	if m.rotten || m.clash[0] != "" && in(m.clash[0]) && in(m.clash[1]) {
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
		m.rotten = random.IntN(10) == 0
		report := search(m.changes, m.run)
		switch {
		case m.runs > maxRuns:
			t.Fatalf("%d runs", m.runs)
		case m.rotten && report.Outcome != Refused:
			t.Fatalf("%d changes: the rest is faulty, and the report is %+v", len(m.changes), report)
		case m.rotten:
			continue
		case report.Outcome != Accepted || report.AllLeftOut || len(report.LeftOut) != len(m.faulty):
			t.Fatalf("%v are faulty of %d, and the report is %+v after %d runs", m.faulty, len(m.changes), report, m.runs)
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
			t.Fatalf("%v are left out, and what was accepted is without %v", names, m.last)
		}
	}
}

func TestSearchNeedsEveryRun(t *testing.T) {
	m := &model{changes: []string{"a", "b", "c", "d"}, clash: [2]string{"b", "d"}}
	if report := search(m.changes, m.run); len(report.LeftOut) != 1 || report.LeftOut[0].NodeSet != "d" || !slices.Equal(m.last, []string{"d"}) {
		t.Errorf("of two that clash: %+v", report)
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
			t.Errorf("run %d failed, and the report is %+v", count, report)
		}
	}
}

func TestSearchEnds(t *testing.T) {
	m := &model{faulty: map[string]bool{}}
	for i := range 1000 {
		name := fmt.Sprintf("%s-%d", strings.Repeat("n", 59), i)
		m.changes, m.faulty[name] = append(m.changes, name), true
	}
	report := search(m.changes, m.run)
	if m.runs > maxRuns || report.Outcome != Accepted || !report.AllLeftOut || len(report.LeftOut) == 0 || len(m.last) != 1000 {
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
