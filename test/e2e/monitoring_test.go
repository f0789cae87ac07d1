//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/slurm-operator/slurm-operator/hack/repo"
	"github.com/slurm-operator/slurm-operator/test/panels"
	"github.com/slurm-operator/slurm-operator/test/prometheus"
)

// TestMonitoring runs a real Prometheus on a real cluster: every metric in the reference has a series, every panel of
// every dashboard has data and is drawn, and alerts fire and resolve. Prometheus runs next to the test, and scrapes
// pods through the API server.
func TestMonitoring(t *testing.T) {
	operator := startOperator(t)
	helmCharts(".").installOperator(t, "--set=metrics.secure=false")
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			run := &monitored{nodeSet: startNodeSet(t, operator, version), ownMetrics: version != "24.11"}
			if run.ownMetrics {
				run.patch(t, "controller.slinky.slurm.net/slurm", map[string]any{
					"metrics": map[string]any{"enabled": true},
				})
				run.configurationIs(t, "True|Applied")
			}
			run.startPrometheus(t)
			t.Run("all metrics have series", run.metricsHaveSeries)
			run.alertsFire(t)
			t.Run("every panel can be drawn", run.drawsPanels)
		})
	}
}

// monitored is a NodeSet with a Prometheus.
type monitored struct {
	*nodeSet
	prometheus *prometheus.Server
	began      time.Time // when Prometheus was started
	// ownMetrics says that slurmctld has metrics of its own.
	ownMetrics bool
}

// monitoringFiles are the rules and dashboards.
func monitoringFiles(t *testing.T) string {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "charts", "slurm-operator", "files", "monitoring")
}

// duration matches the duration of an alert, for which a test would wait too long.
var duration = regexp.MustCompile(`(?m)^(    for: ).*$`)

func (m *monitored) startPrometheus(t *testing.T) {
	t.Helper()
	rules, err := os.ReadFile(filepath.Join(monitoringFiles(t), "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	proxy := func(namespace, target string) string {
		return strings.TrimSuffix(config.Host, "/") + "/api/v1/namespaces/" + namespace + "/" + target
	}
	targets := []prometheus.Target{
		{Job: "operator", URL: proxy(m.operator.Name, "services/slurm-operator-metrics:8080/proxy/metrics")},
		{Job: "webhook", URL: proxy(m.operator.Name, "services/slurm-operator-webhook:8080/proxy/metrics")},
	}
	for _, path := range []string{"jobs", "jobs-users-accts", "nodes", "partitions", "scheduler"} {
		if m.ownMetrics {
			targets = append(targets, prometheus.Target{
				Job: "slurmctld", URL: proxy(m.namespace.Name, "pods/slurm-controller-0:6817/proxy/metrics/"+path),
				Labels: map[string]string{"controller_namespace": m.namespace.Name, "controller": "slurm", "path": path},
			})
		}
	}
	rules = duration.ReplaceAll(rules, []byte("${1}0s"))
	rules = bytes.ReplaceAll(rules, []byte("[30m]"), []byte("[1m]")) // so that what is remembered resolves soon
	options := prometheus.Options{Targets: targets, Rules: rules}
	options.TLS, options.Authorization = credentials(t, config)
	m.began, m.prometheus = time.Now(), prometheus.Start(t, options)
}

// credentials returns Prometheus' settings for the API server.
func credentials(t *testing.T, config *rest.Config) (tls, authorization map[string]any) {
	t.Helper()
	if err := rest.LoadTLSFiles(config); err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	tls = map[string]any{"server_name": config.ServerName}
	for name, content := range map[string][]byte{
		"ca_file": config.CAData, "cert_file": config.CertData, "key_file": config.KeyData,
	} {
		if len(content) == 0 {
			continue
		}
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		tls[name] = path
	}
	if config.BearerToken != "" {
		authorization = map[string]any{"credentials": config.BearerToken}
	}
	return tls, authorization
}

// metricRow matches a row of the metric reference.
var metricRow = regexp.MustCompile("(?m)^\\| `(slurm_operator_[a-z_]+)` \\| (gauge|counter|histogram) \\|")

// metricsHaveSeries scales in around a job on a node that an administrator has drained, while another job waits, so
// that there is something to see, and then checks every metric of the operator and every panel.
func (m *monitored) metricsHaveSeries(t *testing.T) {
	m.startsElasticNode(t)
	job := m.startJob(t, "--nodelist=gpu-1", "--time=30")
	m.mustLogin(t, "scontrol", "update", "nodename=gpu-1", "state=drain", "reason=bad disk")
	waiting := m.queueJob(t, "--begin=now+1hour")
	m.scale(t, 0)
	m.hasPods(t, "gpu-1")
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile(filepath.Join(root, "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := metricRow.FindAllStringSubmatch(string(reference), -1)
	if len(names) < 30 {
		t.Fatalf("the reference has only %d metrics", len(names))
	}
	for _, match := range names {
		name := match[1]
		if match[2] == "histogram" {
			name += "_count"
		}
		m.hasData(t, name, name)
	}
	queries := m.panelQueries(t)
	for _, panel := range slices.Sorted(maps.Keys(queries)) {
		for _, query := range queries[panel] {
			if m.ownMetrics || !usesOwnMetrics(query) {
				m.hasData(t, panel, query)
			}
		}
	}
	m.namespace.MustRun(t, "delete", "nodeset/fast", "--timeout=5m")
	m.mustLogin(t, "scancel", waiting)
	m.scale(t, defaultNodes)
	m.mustLogin(t, "scontrol", "update", "nodename=gpu-1", "state=resume")
	m.finishJob(t, job)
	m.waitUntilAllIdle(t)
}

// startsElasticNode creates an elastic NodeSet, and runs a job on it. Its pod needs a Kubernetes node for itself.
func (m *monitored) startsElasticNode(t *testing.T) {
	t.Helper()
	m.scale(t, 2)
	m.hasPods(t, "gpu-0", "gpu-1")
	m.namespace.ApplyTemplates(t, manifests, "nodeset/elastic-fast.yaml", settings{
		smokeSettings: smokeSettings{Version: m.version}, Nodes: 1,
	})
	elastic := &elasticSet{nodeSet: m.nodeSet}
	m.namespace.Eventually(t, 2*time.Minute, "the record of the elastic node",
		func(ctx context.Context) error { return elastic.sinfoShows(ctx, "fast idle~ 1") })
	elastic.jobBecomes(t, m.submit(t, "--partition=fast", "--wrap=true"), "JobState=COMPLETED", "Restarts=0")
}

// usesOwnMetrics reports whether a query is about slurmctld's own metrics.
func usesOwnMetrics(query string) bool {
	return regexp.MustCompile(`\bslurm_`).MatchString(strings.ReplaceAll(query, "slurm_operator_", ""))
}

func (m *monitored) mustLogin(t *testing.T, command ...string) {
	t.Helper()
	if _, err := m.login(t.Context(), command...); err != nil {
		t.Fatal(err)
	}
}

// dataTimeout is how long a query may have no result: SlurmUnreachable fires after five minutes.
const dataTimeout = 8 * time.Minute

// hasData waits until a query has a result.
func (m *monitored) hasData(t *testing.T, what, query string) {
	t.Helper()
	m.namespace.Eventually(t, dataTimeout, what, func(ctx context.Context) error {
		samples, err := m.prometheus.Query(ctx, query)
		if err == nil && len(samples) == 0 {
			err = errors.New("no data for " + query)
		}
		return err
	})
}

// panelQueries returns the queries of all panels, by dashboard and title, for the cluster of the test.
func (m *monitored) panelQueries(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(monitoringFiles(t), "dashboards", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d dashboards: %v", len(files), err)
	}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$__range", "30m", "$namespace", m.namespace.Name,
		"$controller", "slurm", "$nodeset", ".*")
	queries := map[string][]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(content, &dashboard); err != nil {
			t.Fatal(err)
		}
		for _, panel := range dashboard.Panels {
			key := strings.TrimSuffix(filepath.Base(file), ".json") + ": " + panel.Title
			for _, target := range panel.Targets {
				queries[key] = append(queries[key], variables.Replace(target.Expr))
			}
		}
	}
	return queries
}

// drawsPanels draws all dashboards with what Prometheus has seen, into bin/panels, for a person to look at.
func (m *monitored) drawsPanels(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(monitoringFiles(t), "dashboards", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	drawer := panels.Drawer{Source: m.prometheus, From: m.began, To: time.Now(), Variables: map[string]string{
		"__rate_interval": "1m", "namespace": m.namespace.Name, "controller": "slurm", "nodeset": ".*",
	}}
	for _, file := range files {
		gaps, err := drawer.DrawFile(t.Context(), file, filepath.Join(root, "bin", "panels", m.version))
		if err != nil {
			t.Error(err)
		}
		for _, gap := range gaps {
			if m.ownMetrics || !usesOwnMetrics(gap.Query) { // Slurm 24.11 has none
				t.Errorf("%s: the panel %q has no data for %s", filepath.Base(file), gap.Panel, gap.Query)
			}
		}
	}
}

// alertNames returns the names of all alerts.
func alertNames(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(monitoringFiles(t), "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert string }
		}
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Alert != "" {
				names = append(names, rule.Alert)
			}
		}
	}
	return names
}

// fires waits until an alert has fired, and resolves until it no longer does.
func (m *monitored) fires(t *testing.T, alert string) {
	t.Helper()
	m.hasData(t, alert, fmt.Sprintf(`max_over_time(ALERTS{alertname=%q, alertstate="firing"}[2m])`, alert))
}

func (m *monitored) resolves(t *testing.T, alert string) {
	t.Helper()
	m.namespace.Eventually(t, 5*time.Minute, alert+" to resolve", func(ctx context.Context) error {
		samples, err := m.prometheus.Query(ctx, fmt.Sprintf(`ALERTS{alertname=%q, alertstate="firing"}`, alert))
		if err == nil && len(samples) > 0 {
			err = fmt.Errorf("it fires: %v", samples[0].Labels)
		}
		return err
	})
}
