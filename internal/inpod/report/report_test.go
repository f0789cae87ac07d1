package report_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
)

type state struct{ Hash string }

func TestFetchReturnsWhatHandlerServes(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET /state", report.Handler(func() state { return state{"abc"} }))
	mux.HandleFunc("GET /endless", func(writer http.ResponseWriter, _ *http.Request) {
		_, _ = writer.Write([]byte(`{"Hash":"` + strings.Repeat("a", 1<<20) + `"}`))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	if got, err := report.Fetch[state](t.Context(), address, "/state"); err != nil || got.Hash != "abc" {
		t.Errorf("fetched %+v: %v", got, err)
	}
	for _, path := range []string{"/endless", "/missing"} {
		if got, err := report.Fetch[state](t.Context(), address, path); err == nil {
			t.Errorf("%s is %d bytes", path, len(got.Hash))
		}
	}
}

// stranger is the HTTP proxy of this process, which is read only once: it must not get any request.
var (
	stranger         *httptest.Server
	strangerRequests atomic.Int64
)

func TestMain(m *testing.M) {
	stranger = httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		strangerRequests.Add(1)
		_, _ = writer.Write([]byte(`{"Hash":"forged"}`))
	}))
	if err := os.Setenv("HTTP_PROXY", stranger.URL); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// A redirect or a proxy would let another server answer for a helper.
func TestFetchQueriesOnlyTheGivenAddress(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler(stranger.URL+"/state", http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	for name, address := range map[string]string{
		"redirect": strings.TrimPrefix(server.URL, "http://"),
		"proxy":    "192.0.2.1:80", // reserved for documentation, so nothing answers
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := report.Fetch[state](t.Context(), address, "/state"); err == nil {
				t.Errorf("fetched %+v", got)
			}
			if requests := strangerRequests.Swap(0); requests > 0 {
				t.Errorf("another server got %d requests", requests)
			}
		})
	}
}
