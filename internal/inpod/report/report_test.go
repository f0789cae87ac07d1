package report_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
)

type state struct{ Hash string }

var key = bytes.Repeat([]byte{1}, 32)

// serve serves a report to clients that have the key, and returns the address.
func serve(t *testing.T, key func() ([]byte, error)) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("GET /state", report.Handler(report.Current(func() state { return state{"abc"} }), key))
	return listen(t, mux)
}

func listen(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestFetchReturnsWhatHandlerServes(t *testing.T) {
	address := serve(t, func() ([]byte, error) { return key, nil })
	if got, err := report.Fetch[state](t.Context(), address, "/state", key); err != nil || got.Hash != "abc" {
		t.Errorf("fetched %+v: %v", got, err)
	}
	if got, err := report.Fetch[state](t.Context(), address, "/missing", key); err == nil {
		t.Errorf("fetched %+v", got)
	}
}

func TestFetchLimitsTheAnswer(t *testing.T) {
	address := listen(t, http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		_, _ = writer.Write([]byte(`{"Hash":"` + strings.Repeat("a", 1<<20) + `"}`))
	}))
	if got, err := report.Fetch[state](t.Context(), address, "/state", nil); err == nil {
		t.Errorf("fetched %d bytes", len(got.Hash))
	}
}

func TestReportIsRefusedWithoutTheKey(t *testing.T) {
	held := key
	address := serve(t, func() ([]byte, error) {
		if held == nil {
			return nil, os.ErrNotExist
		}
		return held, nil
	})
	response, err := http.Get("http://" + address + "/state") //nolint:noctx // ends with the server
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized || !strings.Contains(string(body), "only the operator") {
		t.Errorf("without a token: %s: %s", response.Status, body)
	}
	otherKey := bytes.Repeat([]byte{2}, 32)
	got, err := report.Fetch[state](t.Context(), address, "/state", otherKey)
	if !errors.Is(err, report.ErrNotAuthenticated) {
		t.Errorf("with another key: fetched %+v: %v", got, err)
	}
	held = otherKey // the kubelet has replaced the file
	if got, err := report.Fetch[state](t.Context(), address, "/state", otherKey); err != nil {
		t.Errorf("after a rotation: fetched %+v: %v", got, err)
	}
	for _, held = range [][]byte{nil, {}} {
		if got, err := report.Fetch[state](t.Context(), address, "/state", key); err == nil {
			t.Errorf("without a key in the pod: fetched %+v", got)
		}
	}
}

func TestForgedAnswersAreRefused(t *testing.T) {
	// A server without the key that takes the address of a helper can relay requests, and repeat or change answers.
	genuine := serve(t, func() ([]byte, error) { return key, nil })
	otherKey := bytes.Repeat([]byte{2}, 32)
	stranger := serve(t, func() ([]byte, error) { return otherKey, nil })
	relay := func(to string) http.Handler {
		return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
			onward, _ := http.NewRequestWithContext(request.Context(), http.MethodGet, "http://"+to+"/state", http.NoBody)
			onward.Header = request.Header.Clone()
			response, err := http.DefaultTransport.RoundTrip(onward)
			if err != nil {
				return
			}
			defer response.Body.Close()
			writer.Header().Set("Slurm-Operator-Signature", response.Header.Get("Slurm-Operator-Signature"))
			writer.WriteHeader(response.StatusCode)
			_, _ = io.Copy(writer, response.Body)
		})
	}
	forged := http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		_, _ = writer.Write([]byte(`{"Hash":"forged"}`))
	})
	for name, address := range map[string]string{
		"unsigned":                     listen(t, forged),
		"of a helper with another key": stranger,
		"of another helper":            listen(t, relay(genuine)),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := report.Fetch[state](t.Context(), address, "/state", key)
			if !errors.Is(err, report.ErrNotAuthenticated) {
				t.Errorf("fetched %+v: %v", got, err)
			}
		})
	}
}

// An answer is for one request: a recorded one is not accepted later.
func TestRepeatedAnswersAreRefused(t *testing.T) {
	handler := report.Handler(report.Current(func() state { return state{"abc"} }),
		func() ([]byte, error) { return key, nil })
	var first *httptest.ResponseRecorder
	address := listen(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if first == nil {
			first = httptest.NewRecorder()
			handler(first, request)
		}
		writer.Header().Set("Slurm-Operator-Signature", first.Header().Get("Slurm-Operator-Signature"))
		writer.WriteHeader(first.Code)
		_, _ = writer.Write(first.Body.Bytes())
	}))
	if _, err := report.Fetch[state](t.Context(), address, "/state", key); err != nil {
		t.Errorf("the first time: %v", err)
	}
	if got, err := report.Fetch[state](t.Context(), address, "/state", key); !errors.Is(err, report.ErrNotAuthenticated) {
		t.Errorf("the second time: fetched %+v: %v", got, err)
	}
}

// Pods of earlier versions keep running, with helpers that know no tokens.
func TestHelpersOfEarlierVersionsAreQueriedWithoutAKey(t *testing.T) {
	address := listen(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") != "" {
			t.Error("a token was sent")
		}
		_, _ = writer.Write([]byte(`{"Hash":"abc"}`))
	}))
	if got, err := report.Fetch[state](t.Context(), address, "/state", nil); err != nil || got.Hash != "abc" {
		t.Errorf("fetched %+v: %v", got, err)
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
			if got, err := report.Fetch[state](t.Context(), address, "/state", key); err == nil {
				t.Errorf("fetched %+v", got)
			}
			if requests := strangerRequests.Swap(0); requests > 0 {
				t.Errorf("another server got %d requests", requests)
			}
		})
	}
}
