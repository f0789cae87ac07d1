package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// record returns what scontrol prints about a node.
func record(name, state, load, more string) string {
	return "NodeName=" + name + " Arch=x86_64 CPUAlloc=0 CPUTot=2 CPULoad=" + load + " Gres=(null) RealMemory=1000" +
		" FreeMem=" + load + " State=" + state + " LastBusyTime=2026-11-18T20:00:00 CurrentWatts=0 AveWatts=0" + more
}

// printed is what scontrol prints, or why it fails.
type printed struct {
	records []string
	err     error
}

func (p *printed) read(_ context.Context, each func(string)) error {
	if p.err != nil {
		return p.err
	}
	return eachRecord(strings.NewReader(strings.Join(p.records, "\n")+"\n"), each)
}

func ask(t *testing.T, tracker *nodeTracker, since string) slurm.NodeChanges {
	t.Helper()
	answer, err := tracker.Changes(t.Context(), since)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(answer.Names)
	return answer
}

func TestTrackerNamesChangedNodes(t *testing.T) {
	idle := []string{record("a", "IDLE", "0.1", ""), record("b", "IDLE", "0.1", ""), record("c", "IDLE", "0.1", "")}
	for name, test := range map[string]struct {
		then []string
		want []string
	}{
		"nothing":        {idle, nil},
		"another order":  {[]string{idle[2], idle[0], idle[1]}, nil},
		"only the load":  {[]string{record("a", "IDLE", "7.9", ""), idle[1], idle[2]}, nil},
		"a state":        {[]string{idle[0], record("b", "IDLE+DRAIN", "0.1", ""), idle[2]}, []string{"b"}},
		"a new node":     {append(slices.Clone(idle), record("d", "IDLE", "0.1", "")), []string{"d"}},
		"a deleted node": {idle[:2], []string{"c"}},
		"several of them": {
			[]string{record("a", "DOWN", "0.1", ""), record("d", "IDLE", "0.1", "")}, []string{"a", "b", "c", "d"},
		},
		"a reason with a line break": {
			[]string{record("a", "IDLE", "0.1", " Reason=bad\nmemory [root@2026]"), idle[1], idle[2]}, []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := &printed{records: idle}
			tracker := newNodeTracker(source.read)
			first := ask(t, tracker, "")
			if !first.Unknown || first.Names != nil {
				t.Errorf("without a cursor: %+v", first)
			}
			source.records = test.then
			second := ask(t, tracker, first.Cursor)
			if diff := cmp.Diff(test.want, second.Names); diff != "" || second.Unknown {
				t.Errorf("changes (-want +got):\n%s%+v", diff, second)
			}
			if again := ask(t, tracker, second.Cursor); len(again.Names) > 0 || again.Unknown {
				t.Errorf("they changed only once: %+v", again)
			}
			// A question whose answer was lost is repeated.
			if diff := cmp.Diff(test.want, ask(t, tracker, first.Cursor).Names); diff != "" {
				t.Errorf("changes since the first cursor (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsersCannotHideAChange(t *testing.T) {
	source := &printed{records: []string{record("a", "IDLE", "0.1", " Comment=CPULoad=1 FreeMem=1")}}
	tracker := newNodeTracker(source.read)
	first := ask(t, tracker, "")
	source.records[0] = record("a", "IDLE", "0.1", " Comment=CPULoad=2 FreeMem=1")
	if second := ask(t, tracker, first.Cursor); !slices.Equal(second.Names, []string{"a"}) {
		t.Errorf("changes: %+v", second)
	}
}

func TestChangesAreUnknown(t *testing.T) {
	for name, since := range map[string]string{
		"for another agent's cursor":   "OTHER-1",
		"for a cursor from the future": "%s-9",
		"for a malformed cursor":       "%s-x",
		"without a cursor":             "",
	} {
		t.Run(name, func(t *testing.T) {
			tracker := newNodeTracker((&printed{records: []string{record("a", "IDLE", "0", "")}}).read)
			if strings.Contains(since, "%s") {
				since = fmt.Sprintf(since, tracker.epoch)
			}
			if answer := ask(t, tracker, since); !answer.Unknown || answer.Cursor == "" {
				t.Errorf("answer %+v", answer)
			}
		})
	}
	t.Run("if there are too many", func(t *testing.T) {
		source := &printed{}
		tracker := newNodeTracker(source.read)
		first := ask(t, tracker, "")
		for i := range maxNamed + 1 {
			source.records = append(source.records, record(fmt.Sprintf("n%d", i), "IDLE", "0", ""))
		}
		if answer := ask(t, tracker, first.Cursor); !answer.Unknown || len(answer.Names) > 0 {
			t.Errorf("%d names, unknown: %t", len(answer.Names), answer.Unknown)
		}
	})
}

func TestFailedReadForgetsNothing(t *testing.T) {
	source := &printed{records: []string{record("a", "IDLE", "0", ""), record("b", "IDLE", "0", "")}}
	tracker := newNodeTracker(source.read)
	first := ask(t, tracker, "")
	source.err = errDown
	if answer, err := tracker.Changes(t.Context(), first.Cursor); !errors.Is(err, errDown) {
		t.Errorf("answer %+v: %v", answer, err)
	}
	source.err, source.records[1] = nil, record("b", "DOWN", "0", "")
	if answer := ask(t, tracker, first.Cursor); !slices.Equal(answer.Names, []string{"b"}) {
		t.Errorf("changes: %+v", answer)
	}
}

func TestChangesAreServedToTheOperator(t *testing.T) {
	source := &printed{records: []string{record("a", "IDLE", "0", "")}}
	key := []byte("0123456789abcdef")
	server := httptest.NewServer(handler(nil, newNodeTracker(source.read), nil,
		func() ([]byte, error) { return key, nil }))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	fetch := func(since string, key []byte) (slurm.NodeChanges, error) {
		return report.FetchWithin[slurm.NodeChanges](t.Context(), NodesTimeout, address, NodesPath+since, key)
	}
	first, err := fetch("", key)
	if err != nil || !first.Unknown {
		t.Errorf("answer %+v: %v", first, err)
	}
	source.records[0] = record("a", "IDLE+DRAIN", "0", "")
	if second, err := fetch(first.Cursor, key); err != nil || !slices.Equal(second.Names, []string{"a"}) {
		t.Errorf("answer %+v: %v", second, err)
	}
	if answer, err := fetch(first.Cursor, []byte("another key")); !errors.Is(err, report.ErrNotAuthenticated) {
		t.Errorf("without the key: %+v: %v", answer, err)
	}
	source.err = errDown
	if answer, err := fetch(first.Cursor, key); err == nil {
		t.Errorf("without slurmctld: %+v", answer)
	}
}
