//go:build slurm

// Package bench measures the mirror against a real slurmctld with thousands of nodes without slurmd.
package bench

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

var (
	sizes    = flag.String("nodes", "5000", "sizes of the cluster, separated by commas")
	version  = flag.String("slurm", "26.05", "version of Slurm")
	idleTime = flag.Duration("rest", 2*time.Minute, "how long to measure the idle cluster")
	changes  = flag.Int("changes", 40, "number of changes to time")
	unknown  = flag.Int("unknown-changes", 5, "the same without an agent, which takes a list or two for each")
)

// interval is the mirror's interval while changes are timed.
const interval = time.Second

// traffic counts what a client receives.
type traffic struct {
	mu    sync.Mutex
	bytes map[string]int64
	calls map[string]int
	spent map[string]time.Duration
}

func (c *traffic) ObserveRequest(observation slurm.Observation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes[observation.Call] += observation.Received
	c.calls[observation.Call+" "+observation.Result]++
	c.spent[observation.Call+" "+observation.Result] += observation.Duration
}

// reset returns the counts and clears them.
func (c *traffic) reset() (total int64, calls string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, bytes := range c.bytes {
		total += bytes
	}
	for _, call := range slices.Sorted(maps.Keys(c.calls)) {
		calls += fmt.Sprintf("%s ×%d, ", call, c.calls[call])
	}
	c.bytes, c.calls, c.spent = map[string]int64{}, map[string]int{}, map[string]time.Duration{}
	return total, strings.TrimSuffix(calls, ", ")
}

// times returns the average duration of the calls since the last reset.
func (c *traffic) times() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, call := range slices.Sorted(maps.Keys(c.calls)) {
		all = append(all,
			fmt.Sprintf("%s %s", call, (c.spent[call]/time.Duration(c.calls[call])).Round(time.Millisecond)))
	}
	return strings.Join(all, ", ")
}

// asAgent in the environment makes the test binary act as the agent next to slurmctld.
const asAgent = "BENCH_RUNS_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) == "" {
		os.Exit(m.Run())
	}
	panic(agent.Run(context.Background(), agent.Options{
		Config: "/etc/slurm", PIDFile: "/run/slurmctld/slurmctld.pid", Listen: ":6816", Slurmctld: "localhost:6817",
	}))
}

// startAgent starts the agent next to slurmctld, and returns how to ask it for changed nodes.
func startAgent(tb testing.TB, cluster *slurmnet.Cluster) func(context.Context, string) (slurm.NodeChanges, error) {
	tb.Helper()
	key, err := os.ReadFile(cluster.Slurmctld.Path("/etc/slurm/jwt_hs256.key"))
	if err != nil {
		tb.Fatal(err)
	}
	cluster.Slurmctld.RunSelf(tb, asAgent)
	address := net.JoinHostPort(cluster.Slurmctld.Address(), "6816")
	ask := func(ctx context.Context, since string) (slurm.NodeChanges, error) {
		return report.FetchWithin[slurm.NodeChanges](ctx, agent.NodesTimeout, address, agent.NodesPath+since, key)
	}
	cluster.WaitFor(tb, "the agent answers", func(ctx context.Context) error {
		_, err := ask(ctx, "")
		return err
	})
	return ask
}

// dial returns a client of a cluster.
func dial(tb testing.TB, cluster *slurmnet.Cluster, observer slurm.Observer) *rest.Client {
	tb.Helper()
	return dialWith(tb, cluster, rest.Options{Observer: observer})
}

// dialWithAgent returns a client that asks an agent for changed nodes.
func dialWithAgent(tb testing.TB, cluster *slurmnet.Cluster,
	ask func(context.Context, string) (slurm.NodeChanges, error)) *rest.Client {
	tb.Helper()
	return dialWith(tb, cluster, rest.Options{NodeChanges: ask})
}

func dialWith(tb testing.TB, cluster *slurmnet.Cluster, options rest.Options) *rest.Client {
	tb.Helper()
	options.URL = cluster.URL
	options.Token = func(context.Context) (string, error) { return cluster.Token("slurm"), nil }
	client, err := rest.New(options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	return client
}

func BenchmarkMirror(b *testing.B) {
	for text := range strings.SplitSeq(*sizes, ",") {
		size, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("nodes="+text, func(b *testing.B) { benchmark(b, size) })
	}
}

// benchmark measures everything once, which takes minutes.
func benchmark(b *testing.B, size int) {
	b.Helper()
	// Two nodes have a slurmd and are pinged every ten seconds instead of every 100, so that there is noise to
	// suppress.
	cluster := slurmnet.Start(b, slurmnet.Options{
		Version: *version, Nodes: 2, CloudNodes: size, ExtraConf: "SlurmdTimeout=30",
	})
	b.ResetTimer()
	list := measureList(b, cluster)
	measureDrain(b, cluster, size)
	measureHeap(b, cluster, size)
	var requests traffic
	measureSomeNodes(b, dial(b, cluster, nil), dial(b, cluster, &requests), &requests, "", size)
	ask := startAgent(b, cluster)
	measureAgent(b, ask)
	ignore := func(*slurm.Mirror, string) {}
	for _, test := range []struct {
		unit    string
		reader  *rest.Client
		changes int
		tell    func(mirror *slurm.Mirror, name string)
	}{
		{"event", dialWithAgent(b, cluster, ask), *changes, ignore},
		{"event-without-agent", dial(b, cluster, nil), *unknown, ignore},
		{"own-event", dial(b, cluster, nil), *changes, func(mirror *slurm.Mirror, name string) { mirror.Nudge(name) }},
	} {
		reportDelays(b, test.unit, measureEvents(b, dial(b, cluster, nil), test.reader, size, test.changes, test.tell))
	}
	measureIdle(b, cluster, list)
	b.ReportMetric(0, "ns/op")
}

// measureList times a full list, best of three, and returns its bytes.
func measureList(b *testing.B, cluster *slurmnet.Cluster) int64 {
	b.Helper()
	client := dial(b, cluster, nil)
	var list slurm.NodeList
	best := time.Hour
	cpu := cpuTime()
	for range 3 {
		start := time.Now()
		var err error
		if list, err = client.Nodes(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(float64(list.Bytes)/1e6, "list-MB")
	b.ReportMetric(float64(best.Milliseconds()), "list-ms")
	b.ReportMetric(float64((cpuTime()-cpu).Milliseconds())/3, "list-cpu-ms")
	return list.Bytes
}

// measureDrain drains and undrains all nodes, in one request each.
func measureDrain(b *testing.B, cluster *slurmnet.Cluster, size int) {
	b.Helper()
	var requests traffic
	requests.reset()
	client := dial(b, cluster, &requests)
	names := make([]string, size)
	for i := range names {
		names[i] = fmt.Sprintf("cloud-%d", i)
	}
	start := time.Now()
	if err := client.UpdateNodes(b.Context(), names,
		slurm.NodeUpdate{State: slurm.Drain, Reason: slurm.OurReason("bench")}); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(time.Since(start).Milliseconds()), "drain-all-ms")
	if _, calls := requests.reset(); calls != "ping ok ×1, update-nodes ok ×1" {
		b.Errorf("requests were %s", calls)
	}
	if err := client.UpdateNodes(b.Context(), names, slurm.NodeUpdate{State: slurm.Undrain}); err != nil {
		b.Fatal(err)
	}
}

// measureHeap measures the size of a snapshot.
func measureHeap(b *testing.B, cluster *slurmnet.Cluster, size int) {
	b.Helper()
	before := heap()
	mirror, stop := run(b, dial(b, cluster, nil), slurm.MirrorOptions{})
	defer stop()
	if _, err := mirror.Refresh(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(heap()-before)/float64(size), "heap-B/node")
	runtime.KeepAlive(mirror)
}

// decided is how many nodes a decision concerns.
const decided = 32

// reportDelays reports delays in ascending order.
func reportDelays(b *testing.B, unit string, delays []time.Duration) {
	b.Helper()
	b.Logf("%s: %v", unit, delays)
	b.ReportMetric(float64(delays[len(delays)/2].Milliseconds()), unit+"-p50-ms")
	b.ReportMetric(float64(delays[len(delays)*99/100].Milliseconds()), unit+"-p99-ms")
}

// measureSomeNodes measures how long it takes to read everything for a decision about some nodes, after other nodes
// have changed: all nodes, and only these.
func measureSomeNodes(b *testing.B, other, reader *rest.Client, requests *traffic, prefix string, size int) {
	b.Helper()
	requests.reset()
	mirror, stop := run(b, reader, slurm.MirrorOptions{})
	defer stop()
	names := make([]string, decided)
	for i := range names {
		names[i] = fmt.Sprintf("cloud-%d", i*size/decided)
	}
	for _, read := range []struct {
		unit  string
		nodes []string
	}{{"decision-all", nil}, {"decision", names}} {
		var took []time.Duration
		for i := range decisions {
			if err := other.UpdateNodes(b.Context(), []string{"cloud-1"},
				slurm.NodeUpdate{Comment: new(strconv.Itoa(i))}); err != nil {
				b.Fatal(err)
			}
			requests.reset()
			start := time.Now()
			if _, err := mirror.RefreshNodes(b.Context(), read.nodes); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start))
			bytes, calls := requests.reset()
			b.Logf("%s%s: %s, %d bytes: %s", prefix, read.unit, took[i].Round(time.Millisecond), bytes, calls)
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[0].Milliseconds()), prefix+read.unit+"-best-ms")
		b.ReportMetric(float64(took[len(took)/2].Milliseconds()), prefix+read.unit+"-p50-ms")
	}
}

// measureAgent times an answer of the agent, best of three.
func measureAgent(b *testing.B, ask func(context.Context, string) (slurm.NodeChanges, error)) {
	b.Helper()
	best := time.Hour
	for range 3 {
		start := time.Now()
		if _, err := ask(b.Context(), ""); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(float64(best.Milliseconds()), "agent-ms")
}

// measureEvents measures the delay from a change by another client, at a random time, to its event, and returns all
// delays in ascending order. If the change is the operator's own, the mirror is told.
func measureEvents(b *testing.B, other, reader *rest.Client, size, count int,
	tell func(mirror *slurm.Mirror, name string)) []time.Duration {
	b.Helper()
	mirror, stop := run(b, reader, slurm.MirrorOptions{Fast: interval, Slow: interval})
	defer stop()
	subscription := mirror.Subscribe()
	defer subscription.Close()
	if _, err := mirror.Refresh(b.Context()); err != nil {
		b.Fatal(err)
	}
	warmUp(b, other, subscription)
	var delays []time.Duration
	for i := range count {
		time.Sleep(rand.N(2 * interval))
		name := fmt.Sprintf("cloud-%d", rand.N(size))
		comment := fmt.Sprintf("change %d", i)
		if err := other.UpdateNodes(b.Context(), []string{name}, slurm.NodeUpdate{Comment: &comment}); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		tell(mirror, name)
		await(b, subscription, name)
		delays = append(delays, time.Since(start))
	}
	slices.Sort(delays)
	return delays
}

// warmUp waits until the mirror shows a change. The first one takes a list, which is not typical.
func warmUp(b *testing.B, other *rest.Client, subscription *slurm.Subscription[string]) {
	b.Helper()
	subscription.Take()
	comment := time.Now().String()
	if err := other.UpdateNodes(b.Context(), []string{"cloud-0"}, slurm.NodeUpdate{Comment: &comment}); err != nil {
		b.Fatal(err)
	}
	await(b, subscription, "cloud-0")
}

func await(b *testing.B, subscription *slurm.Subscription[string], name string) {
	b.Helper()
	for !slices.Contains(subscription.Take(), name) {
		select {
		case <-subscription.Ready():
		case <-b.Context().Done():
			b.Fatal("the test ended before the event")
		}
	}
}

// measureIdle counts what a mirror with default settings receives from an idle cluster in steady state.
func measureIdle(b *testing.B, cluster *slurmnet.Cluster, list int64) {
	b.Helper()
	var requests traffic
	requests.reset()
	_, stop := run(b, dial(b, cluster, &requests), slurm.MirrorOptions{})
	defer stop()
	time.Sleep(45 * time.Second)
	requests.reset()
	cpu := cpuTime()
	time.Sleep(*idleTime)
	bytes, calls := requests.reset()
	minutes := idleTime.Minutes()
	b.Logf("idle for %s: %s", *idleTime, calls)
	b.ReportMetric(float64(bytes)/1e3/minutes, "rest-KB/min")
	b.ReportMetric((cpuTime()-cpu).Seconds()*1e3/minutes, "rest-cpu-ms/min")
	b.ReportMetric(100*float64(bytes)/minutes/float64(2*list), "rest-%")
	// Including the list every half hour that the measurement may have missed.
	b.ReportMetric(100*(float64(bytes)/minutes+float64(list)/30)/float64(2*list), "rest-worst-%")
}

// run runs a mirror until stop is called.
func run(b *testing.B, client slurm.Reader, options slurm.MirrorOptions) (mirror *slurm.Mirror, stop func()) {
	b.Helper()
	mirror = slurm.NewMirror(client, options)
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() {
		mirror.Run(ctx, func(poll slurm.Poll) {
			if poll.Err != nil && ctx.Err() == nil {
				b.Error(poll.Err)
			}
		})
	})
	return mirror, func() { cancel(); running.Wait() }
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // never fails for the own process
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
