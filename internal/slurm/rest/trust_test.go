package rest_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

// A stranger is a server that must not get any request. It is also the HTTP proxy of this process, which is read only
// once.
type stranger struct {
	*httptest.Server
	tests            *testing.M
	requests, tokens atomic.Int64
}

var other stranger

// Run runs the tests while the stranger listens.
func (s *stranger) Run() int {
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		s.requests.Add(1)
		if request.Header.Get("X-SLURM-USER-TOKEN") != "" {
			s.tokens.Add(1)
		}
	}))
	defer s.Close()
	if err := os.Setenv("HTTP_PROXY", s.URL); err != nil {
		panic(err)
	}
	return s.tests.Run()
}

// gotNothing fails the test if the stranger got requests.
func (s *stranger) gotNothing(t *testing.T) {
	t.Helper()
	if requests, tokens := s.requests.Swap(0), s.tokens.Swap(0); requests > 0 {
		t.Errorf("another server got %d requests, %d of them with a token", requests, tokens)
	}
}

// I23: a token is sent only to the given address, whatever the name of slurmrestd resolves to.
func TestTokenIsSentOnlyToTheGivenAddress(t *testing.T) {
	cluster := slurmtest.New(t, slurmtest.Release2605)
	address := strings.TrimPrefix(cluster.URL, "http://")
	strange, err := url.Parse(other.URL)
	if err != nil {
		t.Fatal(err)
	}
	// "localhost" stands for a name that resolves to another server's address.
	named := "http://localhost:" + strange.Port()
	client := connect(t, cluster, func(options *rest.Options) {
		options.URL, options.Address = named, address
		options.Metrics, options.MetricsAddress = named, address
	})
	if _, err := client.Diag(t.Context()); err != nil {
		t.Errorf("slurmrestd at the given address is not used: %v", err)
	}
	_, _ = client.Census(t.Context()) // whether or not slurmctld has metrics
	other.gotNothing(t)
}

// I23: a proxy of the environment would read the token.
func TestTokenIsNotSentToProxies(t *testing.T) {
	cluster := slurmtest.New(t, slurmtest.Release2605)
	// Reserved for documentation, so nothing answers.
	client := connect(t, cluster, func(options *rest.Options) { options.URL = "http://192.0.2.1:6820" })
	if _, err := client.Diag(t.Context()); err == nil {
		t.Error("there is an answer")
	}
	other.gotNothing(t)
}

// I23: a redirect must not carry the token to another server.
func TestRedirectsAreNotFollowed(t *testing.T) {
	cluster := slurmtest.New(t, slurmtest.Release2605)
	redirect := http.RedirectHandler(other.URL, http.StatusTemporaryRedirect)
	cluster.Inject(slurmtest.Fault{Respond: func(_ *slurmtest.Server, w http.ResponseWriter, r *http.Request) {
		redirect.ServeHTTP(w, r)
	}})
	client := connect(t, cluster, func(options *rest.Options) { options.Metrics = cluster.URL })
	if _, err := client.Diag(t.Context()); err == nil || !strings.Contains(err.Error(), "redirect") {
		t.Errorf("error is %v", err)
	}
	if _, err := client.Census(t.Context()); err == nil {
		t.Error("there is a census")
	}
	other.gotNothing(t)
}
