package rest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// recorded reads the recorded answers of real slurmrestds to one request, by file name.
func recorded(tb testing.TB, request string) map[string][]byte {
	tb.Helper()
	paths, err := filepath.Glob("testdata/*-" + request + ".json")
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no recorded answers to %s: %v", request, err)
	}
	answers := map[string][]byte{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		answers[filepath.Base(path)] = content
	}
	return answers
}

func decodeNodes(body []byte) (nodes []slurm.Node, cursor number, reasons []slurm.Reason, err error) {
	reasons, err = decodeAnswer(bytes.NewReader(body), fields{"nodes": eachNode(&nodes), "last_update": into(&cursor)},
		"nodes")
	return nodes, cursor, reasons, err
}

func decodeJobs(body []byte) (jobs []slurm.Job, reasons []slurm.Reason, err error) {
	reasons, err = decodeAnswer(bytes.NewReader(body), fields{"jobs": eachJob(&jobs)}, "jobs")
	return jobs, reasons, err
}

func TestDecodesRecordedNodes(t *testing.T) {
	for name, body := range recorded(t, "nodes") {
		nodes, cursor, reasons, err := decodeNodes(body)
		if err != nil || len(reasons) != 0 || len(nodes) != 2 || !cursor.set {
			t.Errorf("%s: %d nodes, reasons %v: %v", name, len(nodes), reasons, err)
			continue
		}
		for _, node := range nodes {
			if node.OtherStates != nil || node.Version == "" || node.BootedAt.IsZero() || node.Memory == 0 {
				t.Errorf("%s: %+v", name, node)
			}
			if want := node.Name == "node-1"; node.DrainedByUs() != want {
				t.Errorf("%s: %s is drained by us: %t", name, node.Name, !want)
			}
		}
	}
}

func TestDecodesRecordedJobs(t *testing.T) {
	for name, body := range recorded(t, "jobs") {
		jobs, reasons, err := decodeJobs(body)
		if err != nil || len(reasons) != 0 || len(jobs) == 0 {
			t.Errorf("%s: %d jobs, reasons %v: %v", name, len(jobs), reasons, err)
			continue
		}
		for _, job := range jobs {
			if job.ID == 0 || job.Partition != "all" || job.User != "root" || len(job.States) == 0 ||
				job.Reason != "Resources" {
				t.Errorf("%s: %+v", name, job)
			}
		}
	}
}

func TestNumber(t *testing.T) {
	for text, want := range map[string]number{
		`5`: {value: 5, set: true}, `-1`: {value: -1, set: true}, `1.9`: {value: 1, set: true}, `null`: {},
		`{"set":true,"infinite":false,"number":7}`:  {value: 7, set: true},
		`{"set":false,"infinite":false,"number":7}`: {},
		`{"set":false,"infinite":true,"number":0}`:  {infinite: true},
		`{"set":true,"infinite":true,"number":0}`:   {infinite: true},
		`{}`: {},
	} {
		var got number
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(number{})); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, text := range []string{`"5"`, `true`, `[]`, `{"set":true}`, `1e300`, `{"set":true,"number":"x"}`} {
		var got number
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s was read as %+v", text, got)
		}
	}
}

// seed adds recorded answers, complete and damaged.
func seed(f *testing.F, request string) {
	f.Helper()
	for _, body := range recorded(f, request) {
		f.Add(body, uint(len(body)/2))
		f.Add(bytes.ReplaceAll(body, []byte(`"set":true`), []byte(`"set":false`)), uint(7))
	}
	f.Add([]byte(`{"nodes":[],"jobs":[],"errors":[]}`), uint(3))
}

// rejectTruncated fails the test if decode accepts a truncated answer.
func rejectTruncated(t *testing.T, body []byte, cut uint, decode func([]byte) error) {
	t.Helper()
	whole := bytes.TrimSpace(body)
	if cut >= uint(len(whole)) {
		return
	}
	if err := decode(whole[:cut]); err == nil {
		t.Errorf("an answer that was cut off at %d was accepted: %q", cut, whole[:cut])
	}
}

func FuzzNodes(f *testing.F) {
	seed(f, "nodes")
	f.Fuzz(func(t *testing.T, body []byte, cut uint) {
		nodes, _, reasons, err := decodeNodes(body)
		if err != nil {
			return
		}
		for _, node := range nodes {
			if node.Name == "" ||
				(node.Drained() && (node.Busy() || !node.Flags.Has(slurm.FlagDrain) || node.AllocatedCPUs != 0)) {
				t.Errorf("accepted %+v", node)
			}
		}
		if len(reasons) == 0 {
			rejectTruncated(t, body, cut, func(part []byte) error { _, _, _, err := decodeNodes(part); return err })
		}
	})
}

func FuzzJobs(f *testing.F) {
	seed(f, "jobs")
	f.Fuzz(func(t *testing.T, body []byte, cut uint) {
		jobs, reasons, err := decodeJobs(body)
		if err != nil {
			return
		}
		for _, job := range jobs {
			if len(job.States) == 0 || (job.Running() && !job.Holds()) {
				t.Errorf("accepted %+v", job)
			}
		}
		if len(reasons) == 0 {
			rejectTruncated(t, body, cut, func(part []byte) error { _, _, err := decodeJobs(part); return err })
		}
	})
}

func FuzzDiag(f *testing.F) {
	seed(f, "diag")
	f.Fuzz(func(t *testing.T, body []byte, cut uint) {
		decode := func(body []byte) error {
			var wire wireDiag
			reasons, err := decodeAnswer(bytes.NewReader(body), fields{"statistics": into(&wire)}, "statistics")
			if err == nil && len(reasons) == 0 && wire.diag().RPCs == nil {
				t.Error("statistics without counters")
			}
			return err
		}
		if decode(body) == nil {
			rejectTruncated(t, body, cut, decode)
		}
	})
}

func FuzzReservations(f *testing.F) {
	seed(f, "reservations")
	f.Fuzz(func(t *testing.T, body []byte, cut uint) {
		decode := func(body []byte) error {
			reservation := func(wire *wireReservation) error { _ = wire.reservation(); return nil }
			_, err := decodeAnswer(bytes.NewReader(body), fields{"reservations": eachOf(reservation)}, "")
			return err
		}
		if decode(body) == nil {
			rejectTruncated(t, body, cut, decode)
		}
	})
}

func FuzzErrorAnswer(f *testing.F) {
	for _, body := range recorded(f, "node-nobody") {
		f.Add(body, 200, 1)
		f.Add(body, 500, 2)
	}
	f.Add([]byte("Unable find requested URL."), 404, 0)
	f.Fuzz(func(t *testing.T, body []byte, status, targets int) {
		failure := &slurm.Error{Op: "x", Status: status, Reasons: errorReasons(bytes.NewReader(body))}
		failure.Kind = classify(failure, targets)
		if failure.Kind == 0 || failure.Error() == "" {
			t.Errorf("%+v has no kind", failure)
		}
		named := failure.HasNumber(slurm.NumberInvalidNodeName, slurm.NumberInvalidJob, slurm.NumberInvalidReservation)
		if failure.Kind == slurm.NotFound && (targets != 1 || !named) {
			t.Errorf("%+v was classified as not found", failure)
		}
	})
}
