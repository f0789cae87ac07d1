package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// maxErrorBody is how much of the answer to a failed request is read.
const maxErrorBody = 64 << 10

// A call is a request and how to read its answer.
type call struct {
	name   string // for metrics: one of a few
	op     string // for people
	method string
	path   string // below /slurm/<version>/
	query  url.Values
	body   any
	// targets is how many things a change is about; 0 for a question.
	targets int
	// fields read the members of a successful answer that the caller wants.
	fields fields
	// patient lets the caller's context alone bound the call.
	patient bool
	// required is the member without which an answer is none.
	required string
}

// conditional tells whether the call asks for changes only.
func (c *call) conditional() bool { return c.query.Has("update_time") }

// An outcome is how a call ended.
type outcome struct {
	unchanged bool // HTTP 304
	bytes     int64
}

// do makes a call in the agreed version of the API.
func (c *Client) do(ctx context.Context, call call) (outcome, error) {
	// Agreeing on a version and the call itself share one deadline.
	ctx, cancel := c.deadline(ctx, call)
	defer cancel()
	api, err := c.api(ctx)
	if err != nil {
		return outcome{}, err
	}
	var meta wireMeta
	call.fields = call.fields.and("meta", into(&meta))
	result, err := c.doIn(ctx, api, call)
	c.heard(meta.version())
	if errors.Is(err, slurm.Unsupported) {
		c.forget(api)
	}
	return result, err
}

// deadline bounds a call.
func (c *Client) deadline(ctx context.Context, call call) (context.Context, context.CancelFunc) {
	if call.patient {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.options.Timeout)
}

// doIn makes a call in a version of the API.
func (c *Client) doIn(ctx context.Context, api string, call call) (outcome, error) {
	ctx, cancel := c.deadline(ctx, call)
	defer cancel()
	start := time.Now()
	result, err := c.exchange(ctx, api, call)
	c.observe(call.name, start, result, err)
	return result, err
}

// observe tells the observer, if there is one, how a request ended.
func (c *Client) observe(call string, start time.Time, result outcome, err error) {
	if c.options.Observer == nil {
		return
	}
	observation := slurm.Observation{Call: call, Result: slurm.Result(err), Duration: time.Since(start), Received: result.bytes}
	if result.unchanged {
		observation.Result = "unchanged"
	}
	c.options.Observer.ObserveRequest(observation)
}

// exchange sends the request and reads the answer.
func (c *Client) exchange(ctx context.Context, api string, call call) (outcome, error) {
	failure := &slurm.Error{Op: call.op}
	token, err := c.options.Token(ctx)
	if err != nil {
		failure.Kind, failure.Err = slurm.Unauthorized, fmt.Errorf("getting a token: %w", err)
		return outcome{}, failure
	}
	request, err := c.request(ctx, api, call, token)
	if err != nil {
		failure.Kind, failure.Err = slurm.Rejected, err
		return outcome{}, failure
	}
	response, err := c.transport.RoundTrip(request) // not http.Client: a redirect would take the token elsewhere
	if err != nil {
		failure.Kind, failure.Err = transportKind(ctx, err), err
		return outcome{}, failure
	}
	defer response.Body.Close()
	failure.Status = response.StatusCode
	body := &boundedReader{reader: response.Body, left: c.options.MaxBody}
	defer func() { // what little is left is read, so that the connection can be used again
		_, _ = io.CopyN(io.Discard, body, maxErrorBody)
	}()
	unchanged, err := c.read(ctx, body, call, failure, token)
	result := outcome{unchanged: unchanged, bytes: c.options.MaxBody - body.left}
	if err != nil {
		return result, err
	}
	return result, nil
}

func (c *Client) request(ctx context.Context, api string, call call, token string) (*http.Request, error) {
	target := c.base + "/slurm/" + api + "/" + call.path
	if len(call.query) > 0 {
		target += "?" + call.query.Encode()
	}
	var body io.Reader
	if call.body != nil {
		encoded, err := json.Marshal(call.body)
		if err != nil {
			return nil, fmt.Errorf("encoding the request: %w", err)
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, call.method, target, body)
	if err != nil {
		return nil, err
	}
	if call.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("X-SLURM-USER-TOKEN", token)
	return request, nil
}

// read gives the answer its meaning: nil, unchanged, or the failure, filled in.
func (c *Client) read(
	ctx context.Context, body *boundedReader, call call, failure *slurm.Error, token string,
) (unchanged bool, err error) {
	switch {
	case failure.Status == http.StatusNotModified && call.conditional():
		return true, nil
	case failure.Status == http.StatusOK:
		reasons, err := decodeAnswer(body, call.fields, call.required)
		if err != nil {
			failure.Kind, failure.Err = readKind(ctx, err), err
			return false, failure
		}
		if len(reasons) == 0 {
			return false, nil
		}
		failure.Reasons = scrub(reasons, token)
	case failure.Status < 400: // 204, redirects and everything else that is not an answer to our requests
		failure.Kind = slurm.Malformed
		return false, failure
	default:
		failure.Reasons = scrub(errorReasons(body), token)
	}
	failure.Kind = meaning(failure, call.targets)
	return false, failure
}

// meaning is the kind of an answer with errors. What slurmctld says goes before what HTTP says.
func meaning(failure *slurm.Error, targets int) slurm.Kind {
	said := false // Slurm gave a reason with a number
	for _, reason := range failure.Reasons {
		switch {
		case reason.Number == slurm.NumberAuthentication, reason.Number == slurm.NumberInvalidUser:
			return slurm.Unauthorized
		case reason.Number >= slurm.NumberControllerUnreached && reason.Number < slurm.NumberControllerUnreached+100:
			return slurm.ControllerDown
		}
		said = said || reason.Number > 0
	}
	missing := failure.HasNumber(slurm.NumberInvalidNodeName, slurm.NumberInvalidReservation, slurm.NumberInvalidJob)
	switch status := failure.Status; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNetworkAuthenticationRequired:
		return slurm.Unauthorized
	case said && targets > 1:
		return slurm.PartialEffect
	case missing && targets == 1:
		return slurm.NotFound
	case said:
		return slurm.Rejected
	case status == http.StatusNotFound:
		return slurm.Unsupported
	case status >= 500 || status == http.StatusTooManyRequests:
		return slurm.Failed
	case targets > 1:
		return slurm.PartialEffect
	default:
		return slurm.Rejected
	}
}

// transportKind is the kind of a request that got no answer.
func transportKind(ctx context.Context, err error) slurm.Kind {
	var network net.Error
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &network) && network.Timeout()) {
		return slurm.Timeout
	}
	return slurm.Unreachable
}

// readKind is the kind of an answer that could not be read to its end.
func readKind(ctx context.Context, err error) slurm.Kind {
	var network net.Error
	switch {
	case errors.Is(err, errTooLarge):
		return slurm.TooLarge
	case ctx.Err() != nil, errors.As(err, &network):
		return transportKind(ctx, err)
	default:
		return slurm.Malformed
	}
}

// errorReasons reads what Slurm says in the answer to a failed request. It may be a sentence, or nothing we understand.
func errorReasons(body io.Reader) []slurm.Reason {
	text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody)) // what can be read of it
	var answer struct {
		Errors []wireReason `json:"errors"`
	}
	if json.Unmarshal(text, &answer) == nil {
		return reasonsOf(answer.Errors)
	}
	sentence := strings.TrimSpace(strings.ToValidUTF8(string(text), "?"))
	if len(sentence) > 200 {
		sentence = sentence[:200] + "…"
	}
	if sentence == "" {
		return nil
	}
	return []slurm.Reason{{Text: sentence}}
}

// scrub removes the token from what a server said, in case it repeats what it was sent.
func scrub(reasons []slurm.Reason, token string) []slurm.Reason {
	if token == "" {
		return reasons
	}
	for i := range reasons {
		reasons[i].Text = strings.ReplaceAll(reasons[i].Text, token, "(token)")
		reasons[i].Description = strings.ReplaceAll(reasons[i].Description, token, "(token)")
	}
	return reasons
}

var errTooLarge = errors.New("it is longer than the bound")

// A boundedReader fails after a number of bytes, rather than to pretend that the answer ends there.
type boundedReader struct {
	reader io.Reader
	left   int64
}

func (r *boundedReader) Read(buffer []byte) (int, error) {
	if r.left <= 0 {
		return 0, errTooLarge
	}
	if int64(len(buffer)) > r.left {
		buffer = buffer[:r.left]
	}
	count, err := r.reader.Read(buffer)
	r.left -= int64(count)
	return count, err
}
