//go:build e2e && soak

package e2e_test

import (
	"context"
	"flag"
	"maps"
	"math/rand/v2"
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
	"github.com/slurm-operator/slurm-operator/test/ledger"
	"github.com/slurm-operator/slurm-operator/test/plot"
)

var soakFor = flag.Duration("soak", time.Hour, "how long TestSoak goes on")

// TestSoak lets everything happen at random, for long, and draws what the operator used meanwhile into bin/soak.html.
func TestSoak(t *testing.T) {
	own := ownCluster(t)
	operator := startOperator(t)
	operator.MustHelm(t, "upgrade", "slurm-operator", "slurm-operator", "--reuse-values", "--set=metrics.secure=false", "--wait", "--timeout=3m")
	version, _, _ := strings.Cut(*slurmVersions, ",")
	day := &day{
		nodeSet: startNodeSet(t, operator, version), machines: own, replicas: wanted,
		random: rand.New(rand.NewPCG(*chaosSeed, 1)),
	}
	day.begins(t, ledger.Stream{Name: "soak", Partition: "gpu", Lengths: []int{2, 9, 1, 4, 7}})
	curves := watchMetrics(t)
	happenings := map[string]func(*testing.T){
		"the operator is killed": day.theOperatorIsKilled,
		"the leader is killed":   day.theLeaderIsKilled,
	}
	for name, fault := range faults {
		happenings[name] = func(t *testing.T) {
			t.Helper()
			day.suffers(t, name, fault)
		}
	}
	for name, disaster := range disasters {
		happenings[name] = func(t *testing.T) {
			t.Helper()
			day.survives(t, name, disaster)
		}
	}
	names := slices.Sorted(maps.Keys(happenings))
	const enough = 3 // what has gone wrong so often goes on to do so
	failures := 0
	for end := time.Now().Add(*soakFor); time.Now().Before(end) && failures < enough; {
		name := names[day.random.IntN(len(names))]
		if !t.Run(name, happenings[name]) {
			failures++
		}
	}
	verdict := day.ends(t)
	drawn := curves()
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
}

// sampled are the figures that are drawn, by the metric they are in; counters are drawn as how much they grow in a second.
var sampled = []struct {
	name, metric string
	counter      bool
}{
	{"goroutines", "go_goroutines", false},
	{"heap in use, bytes", "go_memstats_heap_inuse_bytes", false},
	{"resident memory, bytes", "process_resident_memory_bytes", false},
	{"requests to the API server, a second", "rest_client_requests_total", true},
	{"requests to Slurm, a second", "slurm_operator_slurm_requests_total", true},
	{"processor seconds, a second", "process_cpu_seconds_total", true},
}

// watchMetrics reads the operator's metrics every few seconds, where there is an operator, until what it returns is called.
func watchMetrics(t *testing.T) func() []plot.Curve {
	t.Helper()
	curves := make([]plot.Curve, len(sampled))
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
				last = nil // it is being replaced, and the next one counts from zero
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
			}
			last, lastAt = values, now
		}
	})
	return func() []plot.Curve {
		stop()
		watching.Wait()
		return curves
	}
}

// readMetrics is the sum of each metric over its labels.
func readMetrics(ctx context.Context) (map[string]float64, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
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
		for _, metric := range family.GetMetric() {
			values[name] += metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return values, nil
}
