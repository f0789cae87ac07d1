//go:build slurm

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

var (
	pendingJobs = flag.Int("pending", 100_000, "number of pending jobs")
	runningJobs = flag.Int("running", 20_000, "number of running jobs")
	suspended   = flag.Int("suspended", 0,
		"number of running jobs to suspend; job states can only be read for up to some 20,000 jobs")
	arrays = flag.Bool("arrays", false,
		"submit the pending jobs as tasks of an array; only for BenchmarkJobStates")
	listed = flag.Bool("listed", false,
		"also measure a decision with the list of all jobs; slurmrestd needs 250 kB of memory per job")
	cloudNodes = flag.Int("cloud-nodes", 5000, "number of nodes without a slurmd in a cluster with a queue")
	churn      = flag.Duration("churn", 200*time.Millisecond, "time between two jobs that start and end meanwhile")
)

const queueNodes = 20 // with slurmd

// BenchmarkQueue measures decisions, and how fast changes show, against a real slurmctld with an empty and with a long
// queue. The running jobs are allocations without processes, on nodes with as many configured CPUs as needed: slurmctld
// and slurmrestd treat them like all others. Others start and end meanwhile.
func BenchmarkQueue(b *testing.B) {
	perNode := *runningJobs/queueNodes + 10
	cluster := slurmnet.Start(b, slurmnet.Options{
		Version: *version, Nodes: queueNodes, CloudNodes: *cloudNodes, NodeConf: fmt.Sprintf("CPUs=%d", perNode),
		ExtraConf: fmt.Sprintf(
			"MaxJobCount=%d\nSlurmdParameters=config_overrides\nSelectTypeParameters=CR_CPU\nMinJobAge=300\n"+
				"SchedulerParameters=default_queue_depth=1,bf_max_job_test=1,sched_interval=600\nSlurmctldTimeout=300",
			*pendingJobs+*runningJobs+10_000),
	})
	ask := startAgent(b, cluster)
	b.ResetTimer()
	measureWithQueue(b, cluster, ask, "empty-")
	began := time.Now()
	fillQueue(b, cluster, "job/allocate", *runningJobs, false)
	b.Logf("%d jobs run after %s", *runningJobs, time.Since(began).Round(time.Second))
	began = time.Now()
	fillQueue(b, cluster, "job/submit", *pendingJobs, true)
	b.Logf("%d jobs wait after another %s", *pendingJobs, time.Since(began).Round(time.Second))
	suspendSome(b, cluster)
	http.DefaultClient.CloseIdleConnections()
	measureWithQueue(b, cluster, ask, "")
	measureDecision(b, cluster, "", slurm.MirrorOptions{})
	if *listed {
		measureDecision(b, cluster, "listed-", slurm.MirrorOptions{MaxListedJobs: 1 << 30})
	}
	b.ReportMetric(0, "ns/op")
}

// measureWithQueue measures decisions about some nodes and about all, how fast changes by other clients show, and the
// heap, while jobs start and end.
func measureWithQueue(b *testing.B, cluster *slurmnet.Cluster,
	ask func(context.Context, string) (slurm.NodeChanges, error), prefix string) {
	b.Helper()
	defer runJobs(b, cluster)()
	var requests traffic
	requests.reset()
	other := dial(b, cluster, nil)
	reader := dialWith(b, cluster, rest.Options{
		Observer: &requests, Metrics: metricsOf(cluster), NodeChanges: ask,
	})
	measureSomeNodes(b, other, reader, &requests, prefix, *cloudNodes)
	before := heap()
	delays := measureEvents(b, other, reader, *cloudNodes, *changes, func(*slurm.Mirror, string) {})
	total, calls := requests.reset()
	b.Logf("%d changes: %.1f MB: %s", *changes, float64(total)/1e6, calls)
	reportDelays(b, prefix+"event", delays)
	b.ReportMetric(float64(heap()-before)/1e6, prefix+"after-events-heap-MB")
}

// runJobs starts jobs, one after the other, and cancels each when the next one runs, until stop is called.
func runJobs(b *testing.B, cluster *slurmnet.Cluster) (stop func()) {
	b.Helper()
	body, err := json.Marshal(map[string]any{"job": jobDescription(false)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() {
		token, jobs := cluster.Token("root"), cluster.URL+"/slurm/v0.0.42/job/"
		started := 0
		for tick := time.NewTicker(*churn); ctx.Err() == nil; {
			var job struct {
				ID int `json:"job_id"`
			}
			answer, err := send(ctx, http.MethodPost, jobs+"allocate", token, body)
			if err == nil {
				err = json.Unmarshal(answer, &job)
			}
			if err == nil {
				_, err = send(ctx, http.MethodDelete, jobs+strconv.Itoa(job.ID), token, nil)
			}
			if err != nil && ctx.Err() == nil {
				b.Errorf("job %d: %v", started, err)
				return
			}
			started++
			<-tick.C
		}
		b.Logf("%d jobs have started and ended meanwhile", started)
	})
	return func() { cancel(); running.Wait() }
}

func jobDescription(hold bool) map[string]any {
	return map[string]any{
		"name": "bench", "tasks": 1, "cpus_per_task": 1, "time_limit": map[string]any{"set": true, "number": 600},
		"hold":                      hold,
		"current_working_directory": "/tmp", "environment": []string{"PATH=/bin"},
	}
}

// fillQueue submits jobs.
func fillQueue(b *testing.B, cluster *slurmnet.Cluster, path string, count int, hold bool) {
	b.Helper()
	description := jobDescription(hold)
	request := map[string]any{"job": description}
	if path == "job/submit" {
		description["script"] = "#!/bin/sh\nsleep 600\n"
	}
	body, err := json.Marshal(request)
	if err != nil {
		b.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(count))
	var workers sync.WaitGroup
	token := cluster.Token("root")
	for range 8 {
		workers.Go(func() {
			for left.Add(-1) >= 0 {
				// slurmctld does not answer while it saves a long queue, and the job may exist nevertheless.
				for attempt := 1; ; attempt++ {
					_, err := send(b.Context(), http.MethodPost, cluster.URL+"/slurm/v0.0.42/"+path, token, body)
					if err == nil {
						break
					}
					if attempt == 5 {
						b.Error(err)
						return
					}
				}
			}
		})
	}
	workers.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

func send(ctx context.Context, method, url, token string, body []byte) (answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-SLURM-USER-TOKEN", token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("HTTP %d: %s", response.StatusCode, answer)
	}
	return answer, err
}

// suspendSome suspends the first running jobs.
func suspendSome(b *testing.B, cluster *slurmnet.Cluster) {
	b.Helper()
	for id := range *suspended {
		if _, err := cluster.Run(b.Context(), "scontrol", "suspend", strconv.Itoa(id+1)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkJobStates measures the cost of the job states for slurmrestd and slurmctld in CPU time, which is independent
// of other load on the host. With -arrays the jobs are tasks of an array, which are created quickly.
func BenchmarkJobStates(b *testing.B) {
	cluster := slurmnet.Start(b, slurmnet.Options{
		Version: *version, Nodes: 1,
		ExtraConf: fmt.Sprintf("MaxJobCount=%d\nMaxArraySize=%d", *pendingJobs+1000, *pendingJobs+1),
	})
	if !*arrays {
		fillQueue(b, cluster, "job/submit", *pendingJobs, true)
	} else if _, err := cluster.Run(b.Context(), "sbatch", "--hold", fmt.Sprintf("--array=1-%d",
		*pendingJobs), "--wrap=true"); err != nil {
		b.Fatal(err)
	}
	client := dial(b, cluster, nil)
	slow, err := rest.New(rest.Options{
		URL: cluster.URL, Timeout: 10 * time.Minute,
		Token: func(context.Context) (string, error) { return cluster.Token("slurm"), nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(slow.Close)
	_, _ = client.Diag(b.Context()) // connect first
	b.ResetTimer()
	for b.Loop() {
		ours, restd, ctld := cpuTime(), daemonTime(b, cluster.Slurmrestd), daemonTime(b, cluster.Slurmctld)
		began, count := time.Now(), 0
		received, err := slow.JobStates(b.Context(), func(slurm.JobState) error { count++; return nil })
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(count), "jobs")
		b.ReportMetric(float64(received)/1e6, "MB")
		b.ReportMetric(time.Since(began).Seconds()*1e3, "ms")
		b.ReportMetric((cpuTime()-ours).Seconds()*1e3, "cpu-ms")
		b.ReportMetric((daemonTime(b, cluster.Slurmrestd)-restd).Seconds()*1e3, "slurmrestd-cpu-ms")
		b.ReportMetric((daemonTime(b, cluster.Slurmctld)-ctld).Seconds()*1e3, "slurmctld-cpu-ms")
	}
}

// daemonTime returns the CPU time of a daemon's processes.
func daemonTime(b *testing.B, daemon *slurmnet.Daemon) time.Duration {
	b.Helper()
	ticks := 0
	for line := range strings.Lines(daemon.MustRun(b, "sh", "-c", "cat /proc/[0-9]*/stat")) {
		fields := strings.Fields(line)
		if len(fields) < 15 || !strings.Contains(fields[1], "slurm") {
			continue
		}
		for _, field := range fields[13:15] {
			count, _ := strconv.Atoi(field) // written by the kernel
			ticks += count
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// decisions is the number of measured decisions, each after a pause.
const decisions = 5

// measureDecision measures the first decision of a new mirror, and some later ones.
func measureDecision(b *testing.B, cluster *slurmnet.Cluster, prefix string, options slurm.MirrorOptions) {
	b.Helper()
	var requests traffic
	requests.reset()
	resetPeaks(b, cluster)
	before := heap()
	mirror, stop := runLenient(b, dialWith(b, cluster, rest.Options{
		Observer: &requests, Metrics: metricsOf(cluster),
	}), options)
	defer stop()
	for i := range decisions {
		requests.reset()
		began := time.Now()
		snapshot, err := mirror.Refresh(b.Context())
		took, times := time.Since(began), requests.times()
		received, calls := requests.reset()
		b.Logf("%sdecision %d: %s, %.1f MB: %s (on average %s): %v", prefix, i+1, took.Round(time.Millisecond),
			float64(received)/1e6, calls, times, err)
		if i == 0 {
			b.ReportMetric(took.Seconds()*1e3, prefix+"refresh-first-ms")
		}
		if err != nil {
			b.ReportMetric(1, prefix+"failed")
			break
		}
		if i == decisions-1 {
			b.ReportMetric(took.Seconds()*1e3, prefix+"refresh-ms")
			b.ReportMetric(float64(received)/1e6, prefix+"refresh-MB")
			b.Logf("%d pending, %d running, %d loads, partial %t", snapshot.Pending, snapshot.Running,
				len(snapshot.Loads), snapshot.Partial)
		}
		time.Sleep(10 * time.Second)
	}
	b.ReportMetric(float64(heap()-before)/1e6, prefix+"heap-MB")
	b.ReportMetric(peak(b, "/proc/self/status")/1e3, prefix+"peak-MB")
	b.ReportMetric(slurmrestdPeak(b, cluster)/1e3, prefix+"slurmrestd-peak-MB")
	runtime.KeepAlive(mirror)
}

// metricsOf returns the URL of slurmctld's metrics.
func metricsOf(cluster *slurmnet.Cluster) string {
	return "http://" + cluster.Slurmctld.Address() + ":6817"
}

// runLenient runs a mirror that may fail.
func runLenient(b *testing.B, client slurm.Reader, options slurm.MirrorOptions) (mirror *slurm.Mirror, stop func()) {
	b.Helper()
	mirror = slurm.NewMirror(client, options)
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { mirror.Run(ctx, func(slurm.Poll) {}) })
	return mirror, func() { cancel(); running.Wait() }
}

// resetPeaks restarts slurmrestd and resets the peak of this process.
func resetPeaks(b *testing.B, cluster *slurmnet.Cluster) {
	b.Helper()
	cluster.Slurmrestd.Kill(b)
	cluster.Slurmrestd.Start(b)
	client := dial(b, cluster, nil)
	cluster.WaitFor(b, "slurmrestd", func(ctx context.Context) error {
		_, err := client.Diag(ctx)
		return err
	})
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Fatal(err)
	}
}

// slurmrestdPeak returns the peak memory of slurmrestd, in kB.
func slurmrestdPeak(b *testing.B, cluster *slurmnet.Cluster) float64 {
	b.Helper()
	most := 0.0
	for pid := range strings.FieldsSeq(cluster.Slurmrestd.MustRun(b, "sh", "-c",
		"grep -l slurmrestd /proc/[0-9]*/comm | cut -d/ -f3")) {
		most = max(most, highWater(b, cluster.Slurmrestd.MustRun(b, "cat", "/proc/"+pid+"/status")))
	}
	return most
}

// peak returns the peak memory of a process, in kB.
func peak(b *testing.B, file string) float64 {
	b.Helper()
	status, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	return highWater(b, string(status))
}

func highWater(b *testing.B, status string) float64 {
	b.Helper()
	_, rest, found := strings.Cut(status, "VmHWM:")
	if !found {
		return 0
	}
	kilobytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kilobytes
}
