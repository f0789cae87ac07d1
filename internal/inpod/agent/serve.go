package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// handler serves what the agent knows.
func handler(report func() Report, ready func(context.Context) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(writer).Encode(report()) // fails when the client has gone
	})
	mux.HandleFunc("GET /livez", func(writer http.ResponseWriter, _ *http.Request) {
		writer.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /readyz", func(writer http.ResponseWriter, request *http.Request) {
		if err := ready(request.Context()); err != nil {
			http.Error(writer, err.Error(), http.StatusServiceUnavailable)
			return
		}
		writer.WriteHeader(http.StatusNoContent)
	})
	return mux
}

const (
	// verdictAge is how long a verdict on slurmctld holds, so that any number of probes costs slurmctld the same.
	verdictAge = 5 * time.Second
	// httpAge is how long a slurmctld that does not speak HTTP is not spoken to in HTTP again: it logs an error each time.
	httpAge = time.Hour
	// readyTimeout bounds a check by HTTP.
	readyTimeout = 2 * time.Second
)

// readiness tells whether slurmctld serves. Newer ones answer that themselves, by HTTP, and are right also when they are
// a standby; older ones are asked with Slurm's own protocol.
type readiness struct {
	url  string
	ping func(context.Context) (string, error) // the name of the slurmctld in charge

	mutex     sync.Mutex
	verdict   error
	checkedAt time.Time
	plainAt   time.Time // when it was last found not to speak HTTP
}

// Check returns why slurmctld is not ready, or nil.
func (r *readiness) Check(ctx context.Context) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.checkedAt.IsZero() || time.Since(r.checkedAt) >= verdictAge {
		// The verdict is for everybody who asks, so it must not end with this one's patience.
		r.verdict = r.check(context.WithoutCancel(ctx))
		r.checkedAt = time.Now()
	}
	return r.verdict
}

func (r *readiness) check(ctx context.Context) error {
	if r.plainAt.IsZero() || time.Since(r.plainAt) >= httpAge {
		spoke, err := r.askHTTP(ctx)
		if spoke {
			return err
		}
	}
	active, err := r.ping(ctx)
	if err != nil {
		return err
	}
	r.plainAt = time.Now()
	// slurmctld runs only on a host whose name is listed in slurm.conf, and containers of a pod share their name.
	if host, err := os.Hostname(); err != nil || !sameHost(host, active) {
		return fmt.Errorf("the slurmctld in charge is %s", active)
	}
	return nil
}

// sameHost compares names of hosts without their domains.
func sameHost(a, b string) bool {
	a, _, _ = strings.Cut(a, ".")
	b, _, _ = strings.Cut(b, ".")
	return a == b
}

// askHTTP asks slurmctld by HTTP, and tells whether that was of any use.
func (r *readiness) askHTTP(ctx context.Context) (spoke bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return true, err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	switch {
	case err == nil:
		defer response.Body.Close()
		if response.StatusCode >= http.StatusMultipleChoices {
			return true, fmt.Errorf("slurmctld says %s", response.Status)
		}
		return true, nil
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, context.DeadlineExceeded):
		return true, fmt.Errorf("%w: %w", errDown, err)
	default:
		return false, err
	}
}
