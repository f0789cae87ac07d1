//go:build e2e && soak

package e2e_test

import (
	"context"
	"flag"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slurm-operator/slurm-operator/hack/repo"
	"github.com/slurm-operator/slurm-operator/test/growth"
	"github.com/slurm-operator/slurm-operator/test/ledger"
	"github.com/slurm-operator/slurm-operator/test/plot"
)

var soakFor = flag.Duration("soak", time.Hour, "how long TestSoak runs")

// TestSoak injects random faults for a long time, and plots the operator's resource usage into bin/soak.html. In its
// second half the operator is not killed, so that a process gets old enough to show a leak.
func TestSoak(t *testing.T) {
	own := ownCluster(t)
	operator := startOperator(t)
	operator.MustHelm(t, "upgrade", "slurm-operator", "slurm-operator", "--reuse-values", "--set=metrics.secure=false",
		"--wait", "--timeout=10m")
	version, _, _ := strings.Cut(*slurmVersions, ",")
	run := newChaosRun(startNodeSet(t, operator, version, allowsSkew), own)
	run.start(t, ledger.Stream{Name: "soak", Partition: "gpu", Lengths: []int{2, 9, 1, 4, 7}})
	curves := watchMetrics(t)
	steps := map[string]func(*testing.T){}
	for name, fault := range faults {
		steps[name] = func(t *testing.T) {
			t.Helper()
			run.injectFault(t, name, fault)
		}
	}
	for name, disaster := range disasters {
		steps[name] = func(t *testing.T) {
			t.Helper()
			run.injectDisaster(t, name, disaster)
		}
	}
	killSteps := map[string]func(*testing.T){
		"the operator is killed": run.killOperatorRepeatedly, "the leader is killed": run.killLeaderRepeatedly,
	}
	withoutKills := slices.Sorted(maps.Keys(steps))
	maps.Copy(steps, killSteps)
	all := slices.Sorted(maps.Keys(steps))
	const maxFailures = 3 // after that, further steps would fail too
	failures := 0
	for end := time.Now().Add(*soakFor); time.Now().Before(end) && failures < maxFailures; {
		names := all
		if time.Until(end) < *soakFor/2 {
			names = withoutKills
		}
		name := names[run.random.IntN(len(names))]
		if !t.Run(name, steps[name]) {
			failures++
		}
	}
	verdict := run.finish(t)
	drawn, samples := curves()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := plot.Write(&page, "Soak of "+soakFor.String()+" with Slurm "+version, verdict, drawn...); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bin", "soak.html"), []byte(page.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, curve := range drawn {
		t.Logf("%s: at most %.4g, at the end %.4g", curve.Name, curve.Most(), curve.Last())
	}
	for i, figure := range sampled {
		if figure.tolerance == nil {
			continue
		}
		if err := growth.Check(samples[i], *figure.tolerance); err != nil {
			t.Errorf("%s: %v", figure.name, err)
		}
	}
}

// seriesMetric counts the time series of the operator's metrics, and startMetric is when its process started, in Unix
// seconds.
const (
	seriesMetric = "series"
	startMetric  = "process_start_time_seconds"
)

// sampled are the plotted figures and their metrics; counters are plotted as rates per second. A figure with a
// tolerance must not grow with the age of the process by more than that.
var sampled = []struct {
	name, metric string
	counter      bool
	tolerance    *growth.Tolerance
}{
	{"goroutines", "go_goroutines", false, &growth.Tolerance{Share: 0.1, Amount: 20}},
	{"heap in use, bytes", "go_memstats_heap_inuse_bytes", false, &growth.Tolerance{Share: 0.25, Amount: 4 << 20}},
	{"metric series", seriesMetric, false, &growth.Tolerance{Share: 0.1, Amount: 100}},
	{"open files", "process_open_fds", false, &growth.Tolerance{Share: 0.1, Amount: 20}},
	{"resident memory, bytes", "process_resident_memory_bytes", false, nil},
	{"requests to the API server per second", "rest_client_requests_total", true, nil},
	{"requests to Slurm per second", "slurm_operator_slurm_requests_total", true, nil},
	{"CPU seconds per second", "process_cpu_seconds_total", true, nil},
}

// watchMetrics reads the operator's metrics every few seconds while an operator runs. The function that it returns
// stops that, and returns each sampled figure over time and by the age of the process.
func watchMetrics(t *testing.T) func() ([]plot.Curve, [][]growth.Sample) {
	t.Helper()
	curves, samples := make([]plot.Curve, len(sampled)), make([][]growth.Sample, len(sampled))
	for i := range sampled {
		curves[i].Name = sampled[i].name
	}
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		var last map[string]float64
		var lastAt time.Time
		for tick := time.NewTicker(5 * time.Second); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			now := time.Now()
			values, err := readMetrics(ctx)
			if err != nil {
				last = nil // the operator is being replaced, and the next one counts from zero
				continue
			}
			for i, figure := range sampled {
				value := values[figure.metric]
				if figure.counter {
					before, known := last[figure.metric]
					if !known || value < before {
						continue
					}
					value = (value - before) / now.Sub(lastAt).Seconds()
				}
				curves[i].Points = append(curves[i].Points, plot.Point{At: now, Value: value})
				age := now.Sub(time.Unix(int64(values[startMetric]), 0))
				samples[i] = append(samples[i], growth.Sample{Age: age, Value: value})
			}
			last, lastAt = values, now
		}
	})
	return func() ([]plot.Curve, [][]growth.Sample) {
		stop()
		watching.Wait()
		return curves, samples
	}
}

// readMetrics returns the sum of each metric over its labels, and the number of series.
func readMetrics(ctx context.Context) (map[string]float64, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	body, err := client.RESTClient().Verb(http.MethodGet).
		AbsPath("/api/v1/namespaces/slurm-operator/services/slurm-operator-metrics:8080/proxy/metrics").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(body)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for name, family := range families {
		values[seriesMetric] += float64(len(family.GetMetric()))
		for _, metric := range family.GetMetric() {
			values[name] += metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return values, nil
}
