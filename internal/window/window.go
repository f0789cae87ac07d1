// Package window limits requests in flight to what the API server accepts.
//
// A fixed number is either too small for an idle API server, or too large for a busy one, which then refuses requests
// (429). A client waits a second before it repeats a refused request, so refusals cost more time than they save. A
// Window grows while requests succeed and halves when one is refused, as TCP does: quickly up to the size at which
// requests were refused before, then slowly.
package window

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A Window limits requests in flight. Create it with New; a nil Window has no limit.
type Window struct {
	least, most float64

	mu       sync.Mutex
	size     float64
	slowFrom float64         // the size from which on it grows slowly
	inFlight int             // requests
	waiting  []chan struct{} // requests, oldest first; closed when they may be sent
	cut      time.Time       // when it was last halved
}

// New returns a window that starts with the given size, and stays between the other two.
func New(size, least, most int) *Window {
	return &Window{
		size: float64(size), least: float64(least), most: float64(most), slowFrom: float64(most),
	}
}

// Do calls do as soon as the window allows another request, unless the context is done before.
func (w *Window) Do(ctx context.Context, do func() error) error {
	if w == nil {
		return do()
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	defer w.end()
	return do()
}

// begin waits until a request may be sent.
func (w *Window) begin(ctx context.Context) error {
	w.mu.Lock()
	turn := make(chan struct{})
	w.waiting = append(w.waiting, turn)
	w.admit()
	w.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if index := slices.Index(w.waiting, turn); index >= 0 {
		w.waiting = slices.Delete(w.waiting, index, index+1)
	} else { // it was admitted meanwhile
		w.inFlight--
		w.admit()
	}
	return context.Cause(ctx)
}

// admit lets waiting requests be sent, as far as the window allows.
func (w *Window) admit() {
	for len(w.waiting) > 0 && float64(w.inFlight) < w.size {
		close(w.waiting[0])
		w.waiting = w.waiting[1:]
		w.inFlight++
	}
}

// end ends a request. A window that is not used up does not grow: nothing shows that it could be larger.
func (w *Window) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if full := float64(w.inFlight)+1 > w.size; full && w.size < w.slowFrom {
		w.size = min(w.size+1, w.most)
	} else if full {
		w.size = min(w.size+1/w.size, w.most)
	}
	w.inFlight--
	w.admit()
}

// refusalInterval is how long refusals count as one: requests that were in flight together are refused together, and
// are repeated after a second.
const refusalInterval = time.Second

// Refused halves the window, because the API server has refused a request.
func (w *Window) Refused() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Sub(w.cut) >= refusalInterval {
		w.size = max(w.size/2, w.least)
		w.slowFrom, w.cut = w.size, now
	}
}

// Size returns how many requests may be in flight now.
func (w *Window) Size() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(w.size)
}

// Transport returns a transport that reports refused requests to the window.
func (w *Window) Transport(next http.RoundTripper) http.RoundTripper { return transport{next, w} }

type transport struct {
	http.RoundTripper
	window *Window
}

// RoundTrip sends a request.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusTooManyRequests {
		t.window.Refused()
	}
	return response, err
}
