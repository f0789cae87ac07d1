// Package prometheus runs a real Prometheus for a test: the one that make deps unpacks from Debian's package.
package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/cache"
)

// interval is how often Prometheus scrapes and evaluates rules.
const interval = 2 * time.Second

// readyTimeout is how long Prometheus may take to start on a busy computer.
const readyTimeout = 10 * time.Minute

// A Target is what Prometheus scrapes.
type Target struct {
	// Job is the value of the label job.
	Job string
	// URL is the address with the path.
	URL string
	// Labels are added to all series.
	Labels map[string]string
}

// Options configure Prometheus.
type Options struct {
	Targets []Target
	// Rules are the contents of a rules file; empty for none.
	Rules []byte
	// TLS is Prometheus' tls_config, and Authorization its authorization, both for all targets; nil for none.
	TLS, Authorization map[string]any
}

// A Server is a running Prometheus.
type Server struct {
	url string
}

// Connect returns a Prometheus that runs already.
func Connect(address string) *Server { return &Server{strings.TrimSuffix(address, "/")} }

// A Sample is one result of a query.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// A Series is one result of a query at several times.
type Series struct {
	Labels map[string]string
	Points []Point
}

// A Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Start starts Prometheus, which stops when the test ends.
func Start(tb testing.TB, options Options) *Server {
	tb.Helper()
	directory := tb.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			tb.Fatal(err)
		}
		return path
	}
	rules := write("rules.yaml", append([]byte("# rules of the test\n"), options.Rules...))
	config, err := options.config(rules)
	if err != nil {
		tb.Fatal(err)
	}
	root, err := cache.Dir()
	if err != nil {
		tb.Fatal(err)
	}
	address, err := freeAddress(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	log, err := os.Create(filepath.Join(directory, "log"))
	if err != nil {
		tb.Fatal(err)
	}
	command := exec.CommandContext(context.WithoutCancel(tb.Context()), //nolint:gosec // the cache is ours
		filepath.Join(root, "prometheus", "usr", "bin", "prometheus"), "--config.file="+write("prometheus.yaml", config),
		"--storage.tsdb.path="+filepath.Join(directory, "data"), "--web.listen-address="+address)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		tb.Fatalf("%v; if it does not exist, run make deps", err)
	}
	tb.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // always an error: it was killed
		if output, err := os.ReadFile(log.Name()); tb.Failed() {
			tb.Logf("Prometheus' log (%v):\n%s", err, output)
		}
	})
	server := Connect("http://" + address)
	server.waitReady(tb)
	return server
}

// config returns Prometheus' configuration; JSON is YAML.
func (o Options) config(rules string) ([]byte, error) {
	var scrapes []any
	for i, target := range o.Targets {
		location, err := url.Parse(target.URL)
		if err != nil {
			return nil, err
		}
		labels := map[string]string{"job": target.Job}
		maps.Copy(labels, target.Labels)
		scrape := map[string]any{
			"job_name": "target-" + strconv.Itoa(i), "scheme": location.Scheme, "metrics_path": location.Path,
			"static_configs": []any{map[string]any{"targets": []string{location.Host}, "labels": labels}},
		}
		if o.TLS != nil {
			scrape["tls_config"] = o.TLS
		}
		if o.Authorization != nil {
			scrape["authorization"] = o.Authorization
		}
		scrapes = append(scrapes, scrape)
	}
	return json.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": interval.String(), "evaluation_interval": interval.String()},
		"rule_files": []string{rules}, "scrape_configs": scrapes,
	})
}

// freeAddress returns a local address that nothing listens on.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (s *Server) waitReady(tb testing.TB) {
	tb.Helper()
	deadline := time.Now().Add(readyTimeout)
	for {
		err := s.get(tb.Context(), "/-/ready", nil)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("Prometheus is not ready: %v", err)
		}
		time.Sleep(interval / 10)
	}
}

// Query evaluates a query now.
func (s *Server) Query(ctx context.Context, query string) ([]Sample, error) {
	var result []struct {
		Metric map[string]string
		Value  pair
	}
	if err := s.evaluate(ctx, "query", url.Values{"query": {query}}, "vector", &result); err != nil {
		return nil, err
	}
	samples := make([]Sample, len(result))
	for i, one := range result {
		samples[i] = Sample{Labels: one.Metric, Value: one.Value.Value}
	}
	return samples, nil
}

// Range evaluates a query at several times.
func (s *Server) Range(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]Series, error) {
	var result []struct {
		Metric map[string]string
		Values []pair
	}
	arguments := url.Values{
		"query": {query}, "start": {from.UTC().Format(time.RFC3339Nano)}, "end": {to.UTC().Format(time.RFC3339Nano)},
		"step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	}
	if err := s.evaluate(ctx, "query_range", arguments, "matrix", &result); err != nil {
		return nil, err
	}
	series := make([]Series, len(result))
	for i, one := range result {
		series[i].Labels = one.Metric
		for _, value := range one.Values {
			series[i].Points = append(series[i].Points, Point(value))
		}
	}
	return series, nil
}

// A pair is a point as Prometheus encodes it: [seconds, "value"].
type pair Point

// UnmarshalJSON decodes a pair.
func (p *pair) UnmarshalJSON(content []byte) error {
	var text string
	var seconds float64
	if err := json.Unmarshal(content, &[]any{&seconds, &text}); err != nil {
		return err
	}
	value, err := strconv.ParseFloat(text, 64)
	*p = pair{At: time.UnixMilli(int64(seconds * 1000)), Value: value}
	return err
}

// evaluate evaluates a query whose result is of a type.
func (s *Server) evaluate(ctx context.Context, call string, arguments url.Values, resultType string, result any) error {
	query := arguments.Get("query")
	var answer struct {
		Error string
		Data  struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := s.get(ctx, "/api/v1/"+call+"?"+arguments.Encode(), &answer); err != nil {
		return fmt.Errorf("%w: %s: %s", err, query, answer.Error)
	}
	if answer.Data.ResultType != resultType {
		return fmt.Errorf("%s is a %s", query, answer.Data.ResultType)
	}
	return json.Unmarshal(answer.Data.Result, result)
}

// get sends a request and decodes the answer, if one is wanted.
func (s *Server) get(ctx context.Context, path string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if answer != nil {
		err = json.NewDecoder(response.Body).Decode(answer)
	}
	if response.StatusCode != http.StatusOK {
		err = errors.Join(errors.New(response.Status), err)
	}
	return err
}
