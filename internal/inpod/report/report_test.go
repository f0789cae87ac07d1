package report_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
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
