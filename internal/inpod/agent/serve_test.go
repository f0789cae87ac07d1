package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
)

func TestAgentEndpoints(t *testing.T) {
	current := Report{
		FilesHash: "aaa", RunningHash: "bbb", SlurmVersion: "26.05.5", Reconfigures: 2, LastError: "no",
		CheckedAt: start,
	}
	notReady := errors.New("standby")
	key, held := []byte("0123456789abcdef"), &files{config: t.TempDir()}
	if err := os.WriteFile(filepath.Join(held.config, "jwt_hs256.key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		path   string
		ready  error
		status int
		body   string
	}{
		"no state without a token": {"/state", nil, http.StatusUnauthorized, "only the operator may read this; send a " +
			"token that is signed with a key derived from the JWT key\n"},
		"alive regardless of slurmctld": {"/livez", notReady, http.StatusNoContent, ""},
		"ready":                         {"/readyz", nil, http.StatusNoContent, ""},
		"not ready":                     {"/readyz", notReady, http.StatusServiceUnavailable, "standby\n"},
		"nothing else":                  {"/config", nil, http.StatusNotFound, "404 page not found\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(handler(func() Report { return current }, newNodeTracker(nil),
				func(context.Context) error { return test.ready }, held.Key))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+test.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != test.status {
				t.Errorf("status %d, want %d: %v", response.StatusCode, test.status, err)
			}
			if diff := cmp.Diff(test.body, string(body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			got, err := report.Fetch[Report](t.Context(), strings.TrimPrefix(server.URL, "http://"), ReportPath, key)
			if diff := cmp.Diff(current, got); diff != "" || err != nil {
				t.Errorf("with a token: %v, report (-want +got):\n%s", err, diff)
			}
		})
	}
}

// plainServer closes HTTP connections, like older slurmctlds, and counts them.
func plainServer(t *testing.T) (address string, callers chan struct{}) {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	callers = make(chan struct{}, 100)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			callers <- struct{}{}
			_, _ = connection.Read(make([]byte, 4))
			_ = connection.Close()
		}
	}()
	return listener.Addr().String(), callers
}

func TestReadinessUsesSlurmctldEndpoint(t *testing.T) {
	for status, ready := range map[int]bool{http.StatusNoContent: true, http.StatusInternalServerError: false} {
		requests := 0
		server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
			requests++
			writer.WriteHeader(status)
		}))
		defer server.Close()
		check := &readiness{url: server.URL}
		for range 3 {
			if err := check.Check(t.Context()); (err == nil) != ready {
				t.Errorf("status %d: %v", status, err)
			}
		}
		if requests != 1 {
			t.Errorf("%d requests for one verdict", requests)
		}
	}
}

func TestReadinessPingsOldSlurmctld(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	address, callers := plainServer(t)
	active, down := host, error(nil)
	check := &readiness{url: "http://" + address, ping: func(context.Context) (string, error) { return active, down }}
	expire := func() { check.checkedAt = time.Time{} }
	if err := check.Check(t.Context()); err != nil {
		t.Errorf("up: %v", err)
	}
	expire()
	active = "another"
	if err := check.Check(t.Context()); err == nil {
		t.Error("ready while another slurmctld is active")
	}
	expire()
	down = errDown
	if err := check.Check(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("down: %v", err)
	}
	if len(callers) != 1 {
		t.Errorf("%d HTTP requests to a slurmctld that does not support it", len(callers))
	}
}

func TestReadinessFailsWithoutListener(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	check := &readiness{url: server.URL}
	if err := check.Check(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("connection refused: %v", err)
	}
}

func TestMarker(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"in slurm.conf":         {"ClusterName=a\nSlurmctldParameters=enable_configless,config_hash=0af,x\n", "0af"},
		"in any case":           {"slurmctldparameters=config_hash=0af\n", "0af"},
		"in scontrol's output":  {"SlurmctldParameters     = enable_configless,config_hash=0af\n", "0af"},
		"in a comment":          {"#SlurmctldParameters=config_hash=0af\n", ""},
		"in another setting":    {"SchedulerParameters=config_hash=0af\n", ""},
		"as a part of a token":  {"SlurmctldParameters=my_config_hash=0af\n", ""},
		"without SlurmctldPara": {"", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := markerIn(test.text); got != test.want {
				t.Errorf("marker %q, want %q", got, test.want)
			}
		})
	}
}

func TestConfigFileChangesAreDetected(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// Like the kubelet.
	publish := func(version, marker string) {
		must(os.Mkdir(filepath.Join(dir, version), 0o755))
		must(os.WriteFile(filepath.Join(dir, version, "slurm.conf"),
			[]byte("SlurmctldParameters=config_hash="+marker+"\n"), 0o644))
		must(os.Symlink(version, filepath.Join(dir, "..tmp")))
		must(os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	}
	watched := &files{config: dir, pidFile: filepath.Join(dir, "pid")}
	if got := watched.Observe().Marker; got != "" {
		t.Errorf("no files: marker %q", got)
	}
	must(os.Symlink("..data/slurm.conf", filepath.Join(dir, "slurm.conf")))
	publish("..1", "aaa")
	first := watched.Observe()
	if first.Marker != "aaa" || watched.Observe() != first {
		t.Errorf("observed %+v, then %+v", first, watched.Observe())
	}
	publish("..2", "bbb")
	second := watched.Observe()
	if second.Marker != "bbb" || second.Files == first.Files || second.Slurmctld != first.Slurmctld {
		t.Errorf("after a change: %+v", second)
	}
	must(os.WriteFile(watched.pidFile, []byte("7\n"), 0o644))
	if third := watched.Observe(); third.Slurmctld == second.Slurmctld || third.Files != second.Files {
		t.Errorf("after a start: %+v", third)
	}
}
