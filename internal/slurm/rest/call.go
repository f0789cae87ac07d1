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

// maxErrorBody limits how much of the answer to a failed request is read.
const maxErrorBody = 64 << 10

// A call is a request and how to read its answer.
type call struct {
	name   string // for metrics, from a small set
	op     string // for error messages
	method string
	path   string // below /slurm/<version>/
	query  url.Values
	body   any
	// targets is the number of objects to change; 0 for a read.
	targets int
	// fields read the members of a successful answer.
	fields fields
	// noTimeout leaves the deadline to the caller's context.
	noTimeout bool
	// required is the member without which an answer is malformed.
	required string
}

// conditional reports whether the call requests changes only.
func (c *call) conditional() bool { return c.query.Has("update_time") }

// An outcome is the result of a call.
type outcome struct {
	unchanged bool // HTTP 304
	bytes     int64
}

// do makes a call in the negotiated API version.
func (c *Client) do(ctx context.Context, call call) (outcome, error) {
	// The negotiation and the call itself share one deadline.
	ctx, cancel := c.deadline(ctx, call)
	defer cancel()
	api, err := c.api(ctx)
	if err != nil {
		return outcome{}, err
	}
	var meta wireMeta
	call.fields = call.fields.with("meta", into(&meta))
	result, err := c.doIn(ctx, api, call)
	c.checkRelease(meta.version())
	if errors.Is(err, slurm.Unsupported) {
		c.forget(api)
	}
	return result, err
}

// deadline returns the context of a call.
func (c *Client) deadline(ctx context.Context, call call) (context.Context, context.CancelFunc) {
	if call.noTimeout {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.options.Timeout)
}

// doIn makes a call in the given API version.
func (c *Client) doIn(ctx context.Context, api string, call call) (outcome, error) {
	ctx, cancel := c.deadline(ctx, call)
	defer cancel()
	start := time.Now()
	result, err := c.exchange(ctx, api, call)
	c.observe(call.name, start, result, err)
	return result, err
}

// observe reports the result of a request to the observer, if there is one.
func (c *Client) observe(call string, start time.Time, result outcome, err error) {
	if c.options.Observer == nil {
		return
	}
	observation := slurm.Observation{
		Call: call, Result: slurm.Result(err), Duration: time.Since(start), Received: result.bytes,
	}
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
		if kind, ok := errors.AsType[slurm.Kind](err); ok {
			failure.Kind = kind // the source refuses to send a token to this server
		}
		return outcome{}, failure
	}
	request, err := c.request(ctx, api, call, token)
	if err != nil {
		failure.Kind, failure.Err = slurm.Rejected, err
		return outcome{}, failure
	}
	response, err := c.transport.RoundTrip(request) // not http.Client: it would send the token along with redirects
	if err != nil {
		failure.Kind, failure.Err = transportKind(ctx, err), err
		return outcome{}, failure
	}
	defer response.Body.Close()
	failure.Status = response.StatusCode
	body := &boundedReader{reader: response.Body, left: c.options.MaxBody}
	defer func() { // drain a short rest, so that the connection can be reused
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

// read classifies the answer: nil, unchanged, or the completed failure.
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
		failure.Reasons = redact(reasons, token)
	case failure.Status < 400: // 204, redirects and everything else that does not answer our requests
		failure.Kind = slurm.Malformed
		if failure.Status >= 300 && failure.Status != http.StatusNotModified {
			failure.Err = errors.New("slurmrestd does not redirect, so this is another server; check the pods of the RestApi")
		}
		return false, failure
	default:
		failure.Reasons = redact(errorReasons(body), token)
	}
	failure.Kind = classify(failure, call.targets)
	return false, failure
}

// classify returns the kind of an answer with errors. slurmctld's error numbers take precedence over the HTTP status.
func classify(failure *slurm.Error, targets int) slurm.Kind {
	hasNumber := false // Slurm returned an error number
	for _, reason := range failure.Reasons {
		switch {
		case reason.Number == slurm.NumberAuthentication, reason.Number == slurm.NumberInvalidUser:
			return slurm.Unauthorized
		case reason.Number >= slurm.NumberControllerUnreached && reason.Number < slurm.NumberControllerUnreached+100:
			return slurm.ControllerDown
		}
		hasNumber = hasNumber || reason.Number > 0
	}
	missing := failure.HasNumber(slurm.NumberInvalidNodeName, slurm.NumberInvalidReservation, slurm.NumberInvalidJob)
	switch status := failure.Status; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden,
		status == http.StatusNetworkAuthenticationRequired:
		return slurm.Unauthorized
	case hasNumber && targets > 1:
		return slurm.PartialEffect
	case missing && targets == 1:
		return slurm.NotFound
	case hasNumber:
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

// transportKind returns the kind of a request without an answer.
func transportKind(ctx context.Context, err error) slurm.Kind {
	var network net.Error
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &network) && network.Timeout()) {
		return slurm.Timeout
	}
	return slurm.Unreachable
}

// readKind returns the kind of an answer that could not be read completely.
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

// errorReasons reads Slurm's errors from the answer to a failed request, which may also be plain text or not
// understood.
func errorReasons(body io.Reader) []slurm.Reason {
	text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody)) // best effort
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

// redact removes the token from a server's answer, in case the server echoes it.
func redact(reasons []slurm.Reason, token string) []slurm.Reason {
	if token == "" {
		return reasons
	}
	for i := range reasons {
		reasons[i].Text = strings.ReplaceAll(reasons[i].Text, token, "(token)")
		reasons[i].Description = strings.ReplaceAll(reasons[i].Description, token, "(token)")
	}
	return reasons
}

var errTooLarge = errors.New("the answer exceeds the size limit")

// A boundedReader fails after a number of bytes, instead of reporting the end of the answer.
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
