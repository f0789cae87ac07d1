package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
)

// ReportPath is where the agent serves its Report.
const ReportPath = "/state"

// handler serves the agent's state and changes of Slurm nodes, to the operator, and readiness, to anyone: kubelets have
// no key.
func handler(current func() Report, nodes *nodeTracker, ready func(context.Context) error,
	key func() ([]byte, error)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ReportPath, report.Handler(report.Current(current), key))
	mux.HandleFunc("GET "+NodesPath+"{since...}", report.Handler(nodes.answer, key))
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
	// verdictTTL is how long a readiness verdict is valid, so that any number of probes costs slurmctld the same.
	verdictTTL = 5 * time.Second
	// httpRetryInterval is how long HTTP is not tried again on a slurmctld that does not support it: it logs an error
	// each time.
	httpRetryInterval = time.Hour
	// readyTimeout bounds a check by HTTP.
	readyTimeout = 2 * time.Second
)

// readiness checks whether slurmctld is ready. Newer releases report that themselves by HTTP, also correctly as a
// standby; older ones are queried with Slurm's own protocol.
type readiness struct {
	url  string
	ping func(context.Context) (string, error) // returns the name of the active slurmctld

	mutex     sync.Mutex
	verdict   error
	checkedAt time.Time
	noHTTPAt  time.Time // when HTTP was last found to be unsupported
}

// Check returns why slurmctld is not ready, or nil.
func (r *readiness) Check(ctx context.Context) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.checkedAt.IsZero() || time.Since(r.checkedAt) >= verdictTTL {
		// All callers share the verdict, so the deadline of this one must not apply.
		r.verdict = r.check(context.WithoutCancel(ctx))
		r.checkedAt = time.Now()
	}
	return r.verdict
}

func (r *readiness) check(ctx context.Context) error {
	if r.noHTTPAt.IsZero() || time.Since(r.noHTTPAt) >= httpRetryInterval {
		supported, err := r.checkHTTP(ctx)
		if supported {
			return err
		}
	}
	active, err := r.ping(ctx)
	if err != nil {
		return err
	}
	r.noHTTPAt = time.Now()
	// slurmctld runs only on a host whose name is in slurm.conf, and containers of a pod share their host name.
	if host, err := os.Hostname(); err != nil || !sameHost(host, active) {
		return fmt.Errorf("the active slurmctld is %s", active)
	}
	return nil
}

// sameHost compares host names without their domains.
func sameHost(a, b string) bool {
	a, _, _ = strings.Cut(a, ".")
	b, _, _ = strings.Cut(b, ".")
	return a == b
}

// checkHTTP checks slurmctld by HTTP, and reports whether slurmctld supports it.
func (r *readiness) checkHTTP(ctx context.Context) (supported bool, err error) {
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
			return true, fmt.Errorf("slurmctld answers %s", response.Status)
		}
		return true, nil
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, context.DeadlineExceeded):
		return true, fmt.Errorf("%w: %w", errDown, err)
	default:
		return false, err
	}
}
