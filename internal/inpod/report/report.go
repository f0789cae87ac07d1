// Package report carries reports from the operator's helpers in Slurm's pods to the operator, by HTTP and as JSON.
// Package agent and package slurmdbd define what is reported.
//
// A report decides whether a configuration counts as applied, and names hosts and errors. So both sides prove that they
// have the cluster's JWT key, which the operator and the pods of slurmctld and slurmdbd have anyway: a request carries
// a token for one report at one address, and the answer is signed together with that token. Keys for both are derived
// from the JWT key, so that Slurm accepts none of it. Reports are not encrypted.
package report

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// fetchTimeout is the deadline of a request for what helpers have in memory.
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

// ErrNotAuthenticated means that a server answers, but that it and the operator do not have the same key, or that it is
// not the helper.
var ErrNotAuthenticated = errors.New("the report could not be authenticated")

// Current adapts a report that a helper has in memory for Handler.
func Current[T any](current func() T) func(*http.Request) (T, error) {
	return func(*http.Request) (T, error) { return current(), nil }
}

// Handler serves a report to clients that have the JWT key, which is read for each request, because it may change.
func Handler[T any](answer func(*http.Request) (T, error), key func() ([]byte, error)) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		secret, err := key()
		if err != nil {
			http.Error(writer, "the JWT key of this pod cannot be read; check its Secret", http.StatusServiceUnavailable)
			return
		}
		token, _ := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
		audience, err := audienceOf(localAddress(request.Context().Value(http.LocalAddrContextKey)), request.URL.Path)
		if err == nil {
			err = verify(secret, token, audience, time.Now())
		}
		if err != nil {
			writer.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(writer, err.Error(), http.StatusUnauthorized)
			return
		}
		report, err := answer(request)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusServiceUnavailable)
			return
		}
		body, err := json.Marshal(report)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
			return
		}
		signature, err := seal(secret, token, body)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
			return
		}
		writer.Header().Set("Content-Type", "application/json")
		writer.Header().Set(signatureHeader, signature)
		_, _ = writer.Write(body) // fails if the client has disconnected
	}
}

// Fetch requests a report from the helper at an address (IP:port). Without a key, neither the request nor the answer is
// authenticated, as helpers of earlier versions need it.
func Fetch[T any](ctx context.Context, address, path string, key []byte) (T, error) {
	return FetchWithin[T](ctx, fetchTimeout, address, path, key)
}

// FetchWithin requests a report that a helper does not have in memory, with another deadline than Fetch.
func FetchWithin[T any](ctx context.Context, timeout time.Duration, address, path string, key []byte) (T, error) {
	var report T
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return report, err
	}
	token := ""
	if key != nil {
		if token, err = authorize(request, address, path, key); err != nil {
			return report, err
		}
	}
	response, err := fetcher.Do(request)
	if err != nil {
		return report, err
	}
	defer response.Body.Close()
	if err := checkStatus(response); err != nil {
		return report, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBytes))
	if err != nil {
		return report, err
	}
	if key != nil {
		if err := checkSignature(response, key, token, body); err != nil {
			return report, err
		}
	}
	err = json.Unmarshal(body, &report)
	return report, err
}

// checkStatus returns an error if an answer has no report.
func checkStatus(response *http.Response) error {
	switch url, status := response.Request.URL, response.StatusCode; {
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest:
		return fmt.Errorf("%s answers with a redirect (%s), which is not followed; only the operator's helper may listen "+
			"on this port", url, response.Status)
	case status == http.StatusUnauthorized:
		return fmt.Errorf("%w: %s refuses the operator's token; within two minutes after a change of the JWT key that is "+
			"expected; otherwise synchronize the clocks, or restart the pod", ErrNotAuthenticated, url)
	case status != http.StatusOK:
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// checkSignature returns an error unless the helper has signed an answer to this request.
func checkSignature(response *http.Response, key []byte, token string, body []byte) error {
	signature, err := seal(key, token, body)
	if err != nil {
		return err
	}
	if !hmac.Equal([]byte(signature), []byte(response.Header.Get(signatureHeader))) {
		return fmt.Errorf("%w: the answer of %s is not signed with the cluster's JWT key; only the operator's helper may "+
			"listen on this port; restart the pod if its helper is of an earlier version", ErrNotAuthenticated,
			response.Request.URL)
	}
	return nil
}

// authorize adds a token to a request, and returns it.
func authorize(request *http.Request, address, path string, key []byte) (string, error) {
	audience, err := audienceOf(address, path)
	if err != nil {
		return "", err
	}
	token, err := sign(key, audience, time.Now())
	request.Header.Set("Authorization", "Bearer "+token)
	return token, err
}
