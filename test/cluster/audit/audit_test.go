package audit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/test/cluster/audit"
)

// log is an audit log whose last line is incomplete.
var log = strings.Join([]string{
	`{"verb":"create","user":{"username":"alice"},"objectRef":{"resource":"pods","namespace":"n","name":"p"},` +
		`"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-01-01T00:00:01Z"}`,
	`{"verb":"patch","user":{"username":"alice"},"objectRef":{"resource":"pods","subresource":"status","namespace":"n","name":"p"},` +
		`"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:02Z"}`,
	`{"verb":"patch","user":{"username":"alice"},"objectRef":{"resource":"pods","subresource":"status","namespace":"n","name":"q"},` +
		`"responseStatus":{"code":409},"requestReceivedTimestamp":"2026-01-01T00:00:03Z"}`,
	`{"verb":"list","user":{"username":"bob"},"objectRef":{"resource":"nodes"},` +
		`"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:03Z"}`,
	`{"verb":"get","user":{"username":"bob"},"requestReceivedTimestamp":"2026-01-01T00:00:04Z"}`,
	`{"verb":"create","user":{"usern`,
}, "\n")

func TestReadFiltersByTimeAndSkipsPartialLine(t *testing.T) {
	since := time.Date(2026, 1, 1, 0, 0, 2, 0, time.UTC)
	requests, err := audit.Read(strings.NewReader(log), since, audit.Request.IsWrite)
	if err != nil {
		t.Fatal(err)
	}
	want := []audit.Request{
		{User: "alice", Verb: "patch", Resource: "pods/status", Namespace: "n", Name: "p", Code: 200, At: since},
		{
			User: "alice", Verb: "patch", Resource: "pods/status", Namespace: "n", Name: "q", Code: 409,
			At: since.Add(time.Second),
		},
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Error(diff)
	}
}

func TestSummarizeSortsByFrequency(t *testing.T) {
	requests, err := audit.Read(strings.NewReader(log), time.Time{}, audit.Request.IsWrite)
	if err != nil {
		t.Fatal(err)
	}
	want := []audit.Count{
		{User: "alice", Verb: "patch", Resource: "pods/status", Requests: 2},
		{User: "alice", Verb: "create", Resource: "pods", Requests: 1},
	}
	if diff := cmp.Diff(want, audit.Summarize(requests)); diff != "" {
		t.Error(diff)
	}
}
