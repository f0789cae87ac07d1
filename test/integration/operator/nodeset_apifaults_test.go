//go:build integration

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientrest "k8s.io/client-go/rest"
)

// An apiFault is how a faulty API server handles a request. It returns nil to let the request through.
type apiFault func(random float64, request *http.Request, next http.RoundTripper) (*http.Response, error)

// faultRate is the share of requests that a fault hits.
const faultRate = 0.6

// refuse fails writes with a status.
func refuse(code int, reason string, header ...string) apiFault {
	return func(random float64, request *http.Request, _ http.RoundTripper) (*http.Response, error) {
		if random > faultRate || request.Method == http.MethodGet {
			return nil, nil
		}
		response := &http.Response{
			StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
			Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(fmt.Sprintf(
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"injected fault","code":%d}`, reason, code))),
		}
		for i := 0; i+1 < len(header); i += 2 {
			response.Header.Set(header[i], header[i+1])
		}
		return response, nil
	}
}

var errConnectionLost = errors.New("injected fault: connection lost")

const closedWatches = "closed watches"

// apiFaults are faults of the API server, etcd and the network.
var apiFaults = map[string]apiFault{
	"conflicts":         refuse(http.StatusConflict, "Conflict"),
	"too many requests": refuse(http.StatusTooManyRequests, "TooManyRequests", "Retry-After", "1"),
	"internal errors":   refuse(http.StatusInternalServerError, "InternalError"),
	"slow etcd": func(random float64, request *http.Request, next http.RoundTripper) (*http.Response, error) {
		select {
		case <-time.After(time.Duration(random * float64(time.Second))):
			return next.RoundTrip(request)
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	},
	"lost responses": func(random float64, request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if random > faultRate || request.Method == http.MethodGet {
			return nil, nil
		}
		if response, err := next.RoundTrip(request); err == nil { // the write succeeds, but the response is lost
			response.Body.Close()
		}
		return nil, errConnectionLost
	},
	"no connection": func(float64, *http.Request, http.RoundTripper) (*http.Response, error) { return nil, errConnectionLost },
	closedWatches: func(random float64, request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if request.URL.Query().Get("watch") == "" {
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(request.Context(), time.Duration(random*float64(time.Second)))
		response, err := next.RoundTrip(request.WithContext(ctx))
		if err != nil {
			cancel()
			return nil, err
		}
		response.Body = &cancelingBody{response.Body, cancel}
		return response, nil
	},
}

// A cancelingBody is a response body that cancels its context when it is closed.
type cancelingBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close closes the body.
func (b *cancelingBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// withFaults returns a configuration whose clients suffer a fault while it is active, and counts the requests it hit.
func withFaults(config *clientrest.Config, fault apiFault, active *atomic.Bool, hit *atomic.Int64) *clientrest.Config {
	faulty := clientrest.CopyConfig(config)
	faulty.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if !active.Load() {
				return next.RoundTrip(request)
			}
			response, err := fault(rand.Float64(), request, next)
			if response == nil && err == nil {
				return next.RoundTrip(request)
			}
			hit.Add(1)
			return response, err
		})
	})
	return faulty
}

// Whatever faults the API server has, no pod with a job is deleted, and changes made meanwhile are completed
// afterwards.
func TestAPIServerFaultsLoseNoJobs(t *testing.T) {
	t.Parallel()
	for name, fault := range apiFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newNodeWorld(t, newNodeSet(4))
			job := w.runJob(t, "gpu-0", time.Hour)
			busy := w.uids(t)["gpu-0"]
			w.stopManager()
			var active atomic.Bool
			var hit atomic.Int64
			active.Store(name == closedWatches) // existing watches would stay open
			stop := w.run(t, withFaults(server.Config, fault, &active, &hit))
			defer stop()
			w.scale(t, 3) // so that the manager has started and its caches are synced
			w.converges(t, "scale-in", nil)
			active.Store(true)
			w.patch(t, w.set, `{"spec":{"replicas":2,"extraConf":"Weight=7"}}`)
			w.until(t, "the fault to hit requests", func(context.Context) error {
				if hits := hit.Load(); hits < 10 {
					return fmt.Errorf("it hit %d requests", hits)
				}
				return nil
			})
			active.Store(false)
			w.converges(t, "update", nil)
			if uid := w.uids(t)["gpu-0"]; uid != busy {
				t.Error("the pod with the job is gone")
			}
			w.cancelJob(t, job)
			w.ready(t)
			w.hasPods(t, "gpu-0", "gpu-1")
		})
	}
}
