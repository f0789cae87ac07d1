// Package report carries reports from the operator's helpers in Slurm's pods to the operator, by HTTP and as JSON.
// Package agent and package slurmdbd define what is reported.
package report

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// fetchTimeout is the deadline of a request: helpers answer from memory.
	fetchTimeout = 2 * time.Second
	// maxBytes limits an answer.
	maxBytes = 64 << 10
)

// fetcher sends requests directly, and only to the given address: with a proxy or a redirect, another server would
// answer for the helper.
var fetcher = &http.Client{
	Transport: &http.Transport{
		DialContext:     (&net.Dialer{Timeout: fetchTimeout}).DialContext,
		IdleConnTimeout: 90 * time.Second,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Handler serves a report.
func Handler[T any](current func() T) http.HandlerFunc {
	return func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(writer).Encode(current()) // fails if the client has disconnected
	}
}

// Fetch requests a report from the helper at an address (host:port).
func Fetch[T any](ctx context.Context, address, path string) (T, error) {
	var report T
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return report, err
	}
	response, err := fetcher.Do(request)
	if err != nil {
		return report, err
	}
	defer response.Body.Close()
	switch status := response.StatusCode; {
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest:
		return report, fmt.Errorf("%s answers with a redirect (%s), which is not followed; only the operator's helper "+
			"may listen on this port", request.URL, response.Status)
	case status != http.StatusOK:
		return report, fmt.Errorf("%s answers %s", request.URL, response.Status)
	}
	return report, json.NewDecoder(io.LimitReader(response.Body, maxBytes)).Decode(&report)
}
