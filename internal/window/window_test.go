package window

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A server handles some requests in parallel, each in 20 ms, and refuses others.
type server struct {
	mu            sync.Mutex
	parallel      int
	now, refusals int
}

// RoundTrip handles a request.
func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response := &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(strings.NewReader(""))}
	if s.now == s.parallel {
		s.refusals++
		response.StatusCode = http.StatusTooManyRequests
		return response, nil
	}
	s.now++
	s.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	s.mu.Lock()
	s.now--
	return response, nil
}

// send sends requests through a window, as client-go does: a refused one is repeated after a second.
func send(t *testing.T, window *Window, transport http.RoundTripper, requests int) time.Duration {
	t.Helper()
	begin := time.Now()
	var sent sync.WaitGroup
	slots := make(chan struct{}, 256)
	for range requests {
		slots <- struct{}{}
		sent.Go(func() {
			defer func() { <-slots }()
			err := window.Do(t.Context(), func() error {
				for {
					response, err := transport.RoundTrip(nil)
					if err == nil {
						err = response.Body.Close()
					}
					if err != nil || response.StatusCode != http.StatusTooManyRequests {
						return err
					}
					time.Sleep(time.Second)
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	sent.Wait()
	return time.Since(begin)
}

func TestWindowFollowsTheServer(t *testing.T) {
	for name, parallel := range map[string]int{"that is busy": 8, "that is not": 100, "that is idle": 1000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const requests = 5000
				fixed := &server{parallel: parallel}
				before := send(t, nil, fixed, requests)
				adapted := &server{parallel: parallel}
				window := New(16, 4, 256)
				after := send(t, window, window.Transport(adapted), requests)
				ideal := requests * 20 * time.Millisecond / time.Duration(min(parallel, 256))
				t.Logf("ideally %s; with 256 in flight %s and %d refusals; with a window %s and %d refusals, at last %d",
					ideal, before, fixed.refusals, after, adapted.refusals, window.Size())
				if after > 2*ideal+5*time.Second || after > before+time.Second {
					t.Errorf("it took %s, and %s with 256 in flight", after, before)
				}
				if adapted.refusals > fixed.refusals/4 {
					t.Errorf("%d requests were refused, and %d with 256 in flight", adapted.refusals, fixed.refusals)
				}
			})
		})
	}
}

func TestRefusalsAtTheSameTimeCountAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		window := New(64, 4, 256)
		for range 50 {
			window.Refused()
			time.Sleep(10 * time.Millisecond)
		}
		if size := window.Size(); size != 32 {
			t.Errorf("the size is %d", size)
		}
		for range 10 {
			time.Sleep(time.Second)
			window.Refused()
		}
		if size := window.Size(); size != 4 {
			t.Errorf("the size is %d, want the least", size)
		}
	})
}

func TestUnusedWindowDoesNotGrow(t *testing.T) {
	window := New(16, 4, 256)
	for range 1000 {
		if err := window.Do(t.Context(), func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if size := window.Size(); size != 16 {
		t.Errorf("the size is %d after requests one by one", size)
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		window := New(1, 1, 1)
		release, done := make(chan struct{}), make(chan error)
		go func() { done <- window.Do(t.Context(), func() error { <-release; return nil }) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := window.Do(ctx, func() error { t.Error("a second request was sent"); return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := window.Do(t.Context(), func() error { return nil }); err != nil {
			t.Error(err)
		}
	})
}
