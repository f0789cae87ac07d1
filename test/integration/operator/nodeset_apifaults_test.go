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

// A storm is what the API server does to requests while it has troubles. It returns nil to let a request through.
type storm func(random float64, request *http.Request, next http.RoundTripper) (*http.Response, error)

// often is the share of requests that a storm hits.
const often = 0.6

// refuse answers writes with a status instead of carrying them out.
func refuse(code int, reason string, header ...string) storm {
	return func(random float64, request *http.Request, _ http.RoundTripper) (*http.Response, error) {
		if random > often || request.Method == http.MethodGet {
			return nil, nil
		}
		response := &http.Response{
			StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
			Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(fmt.Sprintf(
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"the storm","code":%d}`, reason, code))),
		}
		for i := 0; i+1 < len(header); i += 2 {
			response.Header.Set(header[i], header[i+1])
		}
		return response, nil
	}
}

var errStorm = errors.New("the connection broke in the storm")

const watchesEnd = "watches that end"

// storms are the troubles of an API server, of its etcd and of the network before it.
var storms = map[string]storm{
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
	"answers that are lost": func(random float64, request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if random > often || request.Method == http.MethodGet {
			return nil, nil
		}
		if response, err := next.RoundTrip(request); err == nil { // it is done, and nobody learns of it
			response.Body.Close()
		}
		return nil, errStorm
	},
	"nothing at all": func(float64, *http.Request, http.RoundTripper) (*http.Response, error) { return nil, errStorm },
	watchesEnd: func(random float64, request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if request.URL.Query().Get("watch") == "" {
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(request.Context(), time.Duration(random*float64(time.Second)))
		response, err := next.RoundTrip(request.WithContext(ctx))
		if err != nil {
			cancel()
			return nil, err
		}
		response.Body = &ending{response.Body, cancel}
		return response, nil
	},
}

// An ending is a body that ends with its context.
type ending struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close closes it.
func (e *ending) Close() error {
	e.cancel()
	return e.ReadCloser.Close()
}

// withStorm returns a configuration whose clients meet a storm while it rages, and counts whom it hit.
func withStorm(config *clientrest.Config, storm storm, rages *atomic.Bool, hit *atomic.Int64) *clientrest.Config {
	stormy := clientrest.CopyConfig(config)
	stormy.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if !rages.Load() {
				return next.RoundTrip(request)
			}
			response, err := storm(rand.Float64(), request, next)
			if response == nil && err == nil {
				return next.RoundTrip(request)
			}
			hit.Add(1)
			return response, err
		})
	})
	return stormy
}

// Whatever troubles the API server has, no pod with a job goes, there are never two pods of one name, and what was asked for
// meanwhile is done when they are over.
func TestStormsAtTheAPIServerCostNoJob(t *testing.T) {
	for name, storm := range storms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newNodeWorld(t, newNodeSet(4))
			job := w.runJob(t, "gpu-0", time.Hour)
			busy := w.uids(t)["gpu-0"]
			w.stopManager()
			var rages atomic.Bool
			var hit atomic.Int64
			rages.Store(name == watchesEnd) // those that are there already would stay
			stop := w.run(t, withStorm(server.Config, storm, &rages, &hit))
			defer stop()
			w.scale(t, 3) // and so the manager has begun, and knows its world
			w.converges(t, "scale-in", nil)
			rages.Store(true)
			w.patch(t, w.set, `{"spec":{"replicas":2,"extraConf":"Weight=7"}}`)
			w.until(t, "the storm to be felt", func(context.Context) error {
				if hits := hit.Load(); hits < 10 {
					return fmt.Errorf("it hit %d requests", hits)
				}
				return nil
			})
			rages.Store(false)
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
