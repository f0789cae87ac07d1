// Package audit reads an API server's audit log: which user wrote what, and how often.
package audit

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Request is one request that the API server has answered.
type Request struct {
	User      string
	Verb      string
	Group     string
	Resource  string // with its subresource: pods/status
	Namespace string
	Name      string
	Code      int
	At        time.Time
}

// IsWrite reports whether the request changes objects, successful or not.
func (r Request) IsWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// event is the part of an audit event that is used here.
type event struct {
	Verb      string                    `json:"verb"`
	User      struct{ Username string } `json:"user"`
	ObjectRef *struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	} `json:"objectRef"`
	ResponseStatus           struct{ Code int } `json:"responseStatus"`
	RequestReceivedTimestamp time.Time          `json:"requestReceivedTimestamp"`
}

// ReadFile returns the requests in a log that arrived at or after a time and for which keep returns true.
func ReadFile(path string, since time.Time, keep func(Request) bool) ([]Request, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	requests, err := Read(file, since, keep)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return requests, nil
}

// Read is ReadFile for an open log. It ignores an incomplete last line, which is still being written.
func Read(log io.Reader, since time.Time, keep func(Request) bool) ([]Request, error) {
	var requests []Request
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return requests, nil
		}
		if err != nil {
			return nil, err
		}
		var event event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("line %.80q: %w", line, err)
		}
		if event.ObjectRef == nil || event.RequestReceivedTimestamp.Before(since) {
			continue
		}
		if request := event.request(); keep(request) {
			requests = append(requests, request)
		}
	}
}

func (e event) request() Request {
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return Request{
		User: e.User.Username, Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: resource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code,
		At: e.RequestReceivedTimestamp,
	}
}

// Count is how many requests with a verb to a resource a user made.
type Count struct {
	User, Verb, Resource string
	Requests             int
}

// Summarize counts requests by user, verb and resource, most frequent first.
func Summarize(requests []Request) []Count {
	counts := map[Count]int{}
	for _, request := range requests {
		counts[Count{User: request.User, Verb: request.Verb, Resource: request.Resource}]++
	}
	var summary []Count
	for count, number := range counts {
		count.Requests = number
		summary = append(summary, count)
	}
	slices.SortFunc(summary, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.User, b.User), cmp.Compare(a.Verb, b.Verb),
			cmp.Compare(a.Resource, b.Resource))
	})
	return summary
}
